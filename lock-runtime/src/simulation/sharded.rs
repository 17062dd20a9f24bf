//! A cluster of two nodes: a lock is on one of them, and moves to the other one in steps.
//! Meanwhile calls about it are refused or sent on, as a cluster does that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Event, Store, Wire, World};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::cluster::routes::{NodeId, Routes};
use crate::backend::redis::cluster::topology::Range;
use crate::backend::redis::protocol::call::{Call, Sent};
use crate::backend::redis::protocol::redirect::Redirect;
use crate::backend::redis::protocol::slot;
use crate::base::clock::Moment;
use crate::types::authority::Host;
use crate::types::error::Cause;
use crate::types::key::LockKey;

const KEYS: [&str; 2] = ["a", "b"];
const NODES: usize = 2;

/// Where the locks are, and where each client believes them to be.
pub(super) struct Shards {
    homes: BTreeMap<LockKey, usize>,
    moves: BTreeMap<LockKey, Stage>,
    pub(super) beliefs: Vec<Belief>,
}

/// What one client knows of the nodes.
pub(super) struct Belief {
    routes: Routes,
    /// Whether it has been connected to one.
    opened: bool,
}

/// How far a lock has moved.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Begun,
    /// Some of its keys have moved, and perhaps its owner.
    Split {
        owner: bool,
    },
    /// All of them have.
    Arrived,
}

impl Stage {
    fn has_owner_moved(self) -> bool {
        matches!(self, Self::Split { owner: true } | Self::Arrived)
    }
}

impl Shards {
    pub(super) fn new(clients: usize, now: Moment) -> Self {
        let homes: BTreeMap<_, _> = KEYS.map(|key| (LockKey::of(key), 0)).into();
        let seeds: Vec<_> = (0..NODES).map(host).collect();
        let belief = |_| {
            let mut routes = Routes::new(&seeds, now);
            let from = node(&routes, 0);
            routes.learned(now, from, ranges(&homes));
            let opened = false;
            Belief { routes, opened }
        };
        Self {
            beliefs: (0..clients).map(belief).collect(),
            moves: BTreeMap::new(),
            homes,
        }
    }

    /// Why a node does not carry out a call.
    fn refusal(&self, server: usize, sent: &Sent) -> Option<Trouble> {
        let key = about(&sent.call)?;
        let home = *self.homes.get(&key)?;
        let stage = self.moves.get(&key);
        if server != home && (stage.is_none() || !sent.route.asking) {
            return Some(elsewhere(&key, home, false));
        }
        if !sent.call.needs_holders_alone() {
            return stage.map(|_| Trouble::not_now("TRYAGAIN"));
        }
        let gone = server == home && stage.is_some_and(|it| it.has_owner_moved());
        gone.then(|| elsewhere(&key, other(home), true))
    }
}

impl Belief {
    fn server_of(&self, id: NodeId) -> Option<usize> {
        let mut nodes = self.routes.nodes();
        let found = nodes.find(|(known, _)| *known == id);
        found.map(|(_, host)| usize::from(host.port))
    }

    /// Whether a lock is there, as far as is known.
    fn is_at(&self, key: &LockKey, server: usize) -> bool {
        let node = self.routes.of(slot::of_lock(key));
        node.and_then(|id| self.server_of(id)) == Some(server)
    }
}

fn other(server: usize) -> usize {
    1 - server
}

fn host(server: usize) -> Host {
    Host {
        name: "node".into(),
        port: u16::try_from(server).unwrap_or_default(),
    }
}

fn node(routes: &Routes, server: usize) -> NodeId {
    let host = host(server);
    let mut nodes = routes.nodes();
    let found = nodes.find(|(_, known)| **known == host);
    found.map(|(id, _)| id).expect("every node has a slot")
}

/// What a node answers to `CLUSTER SLOTS`. Each has a slot of its own, so that it is never
/// forgotten.
fn ranges(homes: &BTreeMap<LockKey, usize>) -> Vec<Range> {
    let locks = homes.iter().map(|(key, home)| (slot::of_lock(key), *home));
    let own = (0..NODES).map(|node| (u16::try_from(node).unwrap_or_default(), node));
    let range = |(slot, server)| Range {
        first: slot,
        last: slot,
        master: host(server),
    };
    own.chain(locks).map(range).collect()
}

fn about(call: &Call) -> Option<LockKey> {
    match call {
        Call::Disown(grant) => grant.key(),
        call => call.key().cloned(),
    }
}

fn elsewhere(key: &LockKey, server: usize, asking: bool) -> Trouble {
    let Host { name, port } = host(server);
    Trouble::NotNow(Arc::new(Redirect {
        slot: slot::of_lock(key),
        host: name,
        port,
        asking,
    }))
}

impl World {
    /// Whether another node has to carry out a call; its client hears so.
    pub(super) fn is_sent_elsewhere(&mut self, wire: Wire, sent: &Sent) -> bool {
        let shards = self.shards.as_ref();
        let trouble = shards.and_then(|it| it.refusal(wire.server, sent));
        let elsewhere = trouble.is_some();
        if let Some(trouble) = trouble {
            self.refuse(wire, sent, trouble);
        }
        elsewhere
    }

    /// A client hears that a call was not carried out: a redirection is followed.
    pub(super) fn refused(&mut self, wire: Wire, mut sent: Sent, trouble: Trouble) {
        if !self.hears(wire) {
            return;
        }
        let now = self.now;
        let mut to = None;
        if let (Some(shards), Some(redirect)) = (&mut self.shards, trouble.redirect()) {
            let belief = &mut shards.beliefs[wire.client];
            let from = node(&belief.routes, wire.server);
            let followed = belief.routes.follow(now, from, redirect, &mut sent);
            to = followed.map(|it| belief.server_of(it));
        }
        if let Some(server) = to {
            if self.queue(wire).redirected(now, &mut sent.call) {
                self.post(wire.client, server, sent);
            }
        } else {
            self.queue(wire).replied(now, sent, Err(trouble));
        }
        self.turn(wire.client);
    }

    /// Sends the calls of a client's one queue to the nodes that serve their locks.
    pub(super) fn route(&mut self, client: usize) {
        let now = self.now;
        let Some(shards) = &mut self.shards else {
            return;
        };
        if shards.beliefs[client].routes.begins_to_ask(now) {
            let delay = self.latency();
            self.after(delay, Event::Topology(client));
        }
        // A call that cannot be sent is answered at once, and more may follow from that.
        loop {
            let calls = self.clients[client].links[0].queue.calls();
            if calls.is_empty() {
                return;
            }
            for sent in calls {
                let belief = self.shards.as_ref().map(|it| &it.beliefs[client]);
                let server = belief.and_then(|belief| {
                    let key = about(&sent.call)?;
                    belief.server_of(belief.routes.of(slot::of_lock(&key))?)
                });
                self.post(client, server, sent);
            }
        }
    }

    fn post(&mut self, client: usize, server: Option<usize>, sent: Sent) {
        let links = &mut self.clients[client].links;
        if let Some(server) = server.filter(|server| links[*server].up) {
            links[server].outbox.push(sent);
        } else {
            let trouble = Trouble::not_now("not connected");
            links[0].queue.replied(self.now, sent, Err(trouble));
        }
    }

    /// A client hears who serves which slots.
    pub(super) fn hear_topology(&mut self, client: usize) {
        let now = self.now;
        if let Some(shards) = &mut self.shards {
            let routes = &mut shards.beliefs[client].routes;
            let from = node(routes, 0);
            let changed = routes.learned(now, from, ranges(&shards.homes));
            let queue = &mut self.clients[client].links[0].queue;
            let concerns = |key: &LockKey| changed.contains(slot::of_lock(key));
            queue.replaced(concerns);
            queue.resume(now, concerns);
            self.turn(client);
        }
    }

    /// A client is connected to a node.
    pub(super) fn node_is_up(&mut self, client: usize, server: usize) {
        let now = self.now;
        if let Some(shards) = &mut self.shards {
            let belief = &mut shards.beliefs[client];
            let queue = &mut self.clients[client].links[0].queue;
            if std::mem::replace(&mut belief.opened, true) {
                queue.resume(now, |key| belief.is_at(key, server));
            } else {
                queue.connected(now);
            }
        }
    }

    /// A client has lost its connection to a node, and these calls with it.
    pub(super) fn node_is_down(&mut self, wire: Wire, lost: Vec<Sent>, cause: &Cause) {
        let now = self.now;
        let trouble = Trouble::Unknown(Cause::clone(cause));
        let links = &mut self.clients[wire.client].links;
        let unsent = std::mem::take(&mut links[wire.server].outbox);
        let queue = &mut links[0].queue;
        for sent in lost.into_iter().chain(unsent) {
            queue.replied(now, sent, Err(trouble.clone()));
        }
        if let Some(shards) = &self.shards {
            let belief = &shards.beliefs[wire.client];
            queue.interrupt(&trouble, |key| belief.is_at(key, wire.server));
        }
    }

    /// A lock begins to move, unless it does already.
    pub(super) fn begin_move(&mut self) {
        let key = LockKey::of(KEYS[self.rng.usize(..KEYS.len())]);
        let idle = |shards: &Shards| !shards.moves.contains_key(&key);
        if self.shards.as_ref().is_some_and(idle) {
            self.move_on(key);
        }
    }

    /// The next step of a move.
    pub(super) fn move_on(&mut self, key: LockKey) {
        let owner = self.rng.bool();
        let Some(shards) = &mut self.shards else {
            return;
        };
        let home = shards.homes[&key];
        let before = shards.moves.get(&key).copied();
        let after = match before {
            None => Some(Stage::Begun),
            Some(Stage::Begun) => Some(Stage::Split { owner }),
            Some(Stage::Split { .. }) => Some(Stage::Arrived),
            Some(Stage::Arrived) => None,
        };
        let moved = |stage: Option<Stage>| stage.is_some_and(Stage::has_owner_moved);
        if let Some(stage) = after {
            shards.moves.insert(key.clone(), stage);
        } else {
            shards.moves.remove(&key);
            shards.homes.insert(key.clone(), other(home));
        }
        if moved(after)
            && !moved(before)
            && let [first, second] = &mut self.servers[..]
        {
            let (from, to) = if home == 0 {
                (first, second)
            } else {
                (second, first)
            };
            from.hand_over(&key, to);
        }
        self.say(|| format!("{key} moves from node {home}: {after:?}"));
        if after.is_some() {
            let delay = Duration::from_millis(self.rng.u64(1..200));
            self.after(delay, Event::Move(key));
        } else if self.calm {
            self.begin_move();
        }
    }
}

#[test]
fn a_lock_that_moves_has_one_holder_and_everybody_is_served() {
    super::seeds::simulate_all("0..60", Store::Sharded);
}

#[test]
fn a_lock_that_moves_is_not_lost() {
    const TIME: Duration = Duration::from_secs(20);
    for seed in 0..20 {
        let mut world = World::of(seed, Store::Sharded, super::CLIENTS);
        world.calm = true;
        for client in &mut world.clients {
            client.steady = true;
        }
        world.begin_move();
        let mut turns = 0;
        while world.now.since(world.start) < TIME {
            let event = world.next_event().expect("somebody always asks");
            world.happen(event);
            world.check().expect("one holder");
            turns += 1;
        }
        assert!(turns > 1_000, "{turns} events");
        let lost: u32 = world.clients.iter().map(|it| it.lost).sum();
        assert_eq!(lost, 0, "leases lost with seed {seed}");
    }
}

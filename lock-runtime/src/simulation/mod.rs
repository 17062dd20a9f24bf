//! Drivers and queues against model servers on one clock, with delays, broken
//! connections, pauses, crashes and cancellations drawn from a seed: at most one
//! holder within its deadline, and everybody who lives is served.
//!
//! `LOCK_SEEDS=FROM..TO` chooses the seeds, `LOCK_SEED=N` one of them with a
//! trace of what happened.

mod asking;
mod chains;
mod client;
mod cooling;
mod disputes;
mod downgrades;
mod failover;
mod faults;
mod forgetting;
mod history;
mod hot;
mod knowing;
mod late;
mod leftovers;
mod limits;
mod observing;
mod overrunning;
mod refusals;
mod seeds;
mod server;
mod sharded;
mod tickets;
mod tickets_of_readers;
mod traffic;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

use crate::backend::queue::Rules;
use crate::backend::queue::protocol::call::Bearer;
use crate::backend::queue::protocol::message::Message;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::protocol::call::Sent;
use crate::backend::redis::protocol::reply::Reply;
use crate::base::clock::{Clock, Moment};
use crate::base::numbers::Numbered;
use crate::types::answer;
use crate::types::holder::Status;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::terms::LeaseId;
use crate::types::ticket::Ticket;

use asking::{Asking, Standing};
use chains::Counts;
use client::Client;
use cooling::Cooldowns;
use disputes::Dispute;
use failover::{Replica, Safeguard};
use history::Checked;
use leftovers::Leftovers;
use limits::Limits;
use observing::Observing;
use refusals::Rights;
use server::Server;
use sharded::Shards;
use tickets::Tickets;

const CLIENTS: usize = 4;
/// Faults happen in the first part, healing is watched in the second.
const FAULTS: Duration = Duration::from_secs(30);
// A long queue that grew meanwhile takes its time.
const HEALED: Duration = Duration::from_secs(1_800);

/// What is on its way, and when it arrives.
struct World {
    clock: Clock,
    now: Moment,
    start: Moment,
    rng: Rng,
    servers: Vec<Server>,
    /// One that may replace the first.
    replica: Option<Replica>,
    /// Where each lock is, if they are divided.
    shards: Option<Shards>,
    clients: Vec<Client>,
    events: BinaryHeap<Reverse<(Moment, u64)>>,
    pending: Numbered<u64, Event>,
    count: u64,
    highest: BTreeMap<LockKey, u64>,
    /// The last writer of each lock, and its fence.
    writers: BTreeMap<LockKey, (u64, usize, LeaseId)>,
    counts: Counts,
    disputes: Vec<Dispute>,
    /// The locks that cool down, if no server forgets them.
    cooldowns: Option<Cooldowns>,
    /// The model that accepts what the server does, if it has all of it.
    checked: Option<Checked>,
    /// The tickets, if locks go from client to client.
    tickets: Option<Tickets>,
    /// The rights of the clients, if some are withdrawn.
    rights: Option<Rights>,
    /// What decides which scripts are forgotten, if some are.
    forgets: Option<Rng>,
    /// What stays on the servers, if some calls are refused for now.
    leftovers: Option<Leftovers>,
    /// Who was asked to yield, if somebody asks.
    asking: Option<Asking>,
    /// How many may wait, if that is limited.
    limits: Option<Limits>,
    /// Who leads, and who was shown, if there are elections.
    observing: Option<Observing>,
    /// Whether nobody is notified, as behind a pooler.
    silent: bool,
    /// Whether nothing goes wrong, and no way is long.
    calm: bool,
    loud: bool,
}

/// Who may act under which lock.
#[derive(Default)]
struct Holders(BTreeMap<LockKey, Vec<(usize, Kind)>>);

impl Holders {
    /// A client acts under a lock. Returns the others if it may not beside them.
    fn join(&mut self, key: &LockKey, client: usize, kind: Kind) -> Result<(), String> {
        let beside = self.0.entry(key.clone()).or_default();
        let together = beside.iter().all(|(_, other)| *other == kind);
        if !together || !kind.admits(beside.len()) {
            return Err(format!("{beside:?}"));
        }
        beside.push((client, kind));
        Ok(())
    }
}

/// Where the locks are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Store {
    One,
    /// One that a replica may replace.
    Failing(Safeguard),
    /// Five, of which a majority decides.
    Majority,
    /// Two that divide the locks.
    Sharded,
    /// One that has to know who of a chain holds the lock, as PostgreSQL has.
    Knowing,
}

impl Store {
    /// What the queues know of the servers.
    fn rules(self) -> Rules {
        let knows = self == Self::Knowing;
        Rules {
            replicated: self == Self::Failing(Safeguard::Replicas),
            pushes_are_hints: knows,
            passes: knows,
        }
    }

    fn servers(self) -> usize {
        match self {
            Self::One | Self::Failing(_) | Self::Knowing => 1,
            Self::Majority => 5,
            Self::Sharded => 2,
        }
    }
}

enum Event {
    Request(Wire, Sent),
    Answer(Wire, Sent, Reply),
    Push(Wire, Message),
    /// Why a call was not carried out.
    Refused(Wire, Sent, Trouble),
    /// A client hears which node serves which lock.
    Topology(usize),
    /// The next step of a lock to another node.
    Move(LockKey),
    /// A lock is taken away.
    TakeAway,
    /// A question whether the replica has everything, for this time.
    Wait(Wire, Duration),
    /// Whether it has.
    Replicated(Wire, bool),
    Wake(usize),
    Connect {
        client: usize,
        server: usize,
    },
    Fault,
    Cut {
        client: usize,
        server: usize,
    },
    /// The replica replaces the server.
    FailOver,
    /// Rights change.
    Rights,
    /// Somebody asks a holder to yield.
    AskToYield,
    /// A client looks whether it was asked.
    Look(usize),
    Looked(Wire, Vec<Bearer>),
    Told(Wire, Vec<(Bearer, Standing)>),
    /// A client asks who holds a lock.
    Status(Wire, LockKey, answer::Reply<Status>),
    /// What the server says of it.
    Said(Wire, answer::Reply<Status>, Status),
    /// A client gets a ticket.
    Adopt(usize, Arc<Ticket>),
}

/// A connection of a client to a server, and which one in a row it is.
#[derive(Clone, Copy, PartialEq)]
struct Wire {
    client: usize,
    server: usize,
    generation: u64,
}

impl World {
    fn new(seed: u64, store: Store, loud: bool) -> Self {
        let mut world = Self::of(seed, store, CLIENTS);
        if store != Store::Majority {
            for client in &mut world.clients {
                client.crowded = seed % 2 == 1;
            }
        }
        for client in &mut world.clients {
            client.overruns = seed % 3 == 2;
        }
        if matches!(store, Store::One | Store::Knowing) && seed % 4 == 1 {
            world.plan_to_revoke();
        }
        world.silent = store == Store::Knowing && seed % 4 == 3;
        world.loud = loud;
        world.after(Duration::from_millis(100), Event::Fault);
        world
    }

    /// One in which nothing goes wrong.
    fn of(seed: u64, store: Store, clients: usize) -> Self {
        fastrand::seed(seed);
        let clock = Clock::manual();
        clock.advance(Duration::from_secs(1));
        let now = clock.now();
        let mut rng = Rng::with_seed(seed);
        let servers = store.servers();
        let clients: Vec<_> = (0..clients)
            .map(|_| Client::new(clock.clone(), rng.fork(), store))
            .collect();
        let mut world = Self {
            clock,
            now,
            start: now,
            rng,
            servers: (0..servers).map(|_| Server::of(store, now)).collect(),
            replica: match store {
                Store::Failing(safeguard) => Some(Replica::new(safeguard, now)),
                _ => None,
            },
            shards: (store == Store::Sharded).then(|| Shards::new(clients.len(), now)),
            clients,
            events: BinaryHeap::new(),
            pending: Numbered::default(),
            count: 0,
            highest: BTreeMap::new(),
            writers: BTreeMap::new(),
            counts: Counts::default(),
            disputes: Vec::new(),
            cooldowns: Cooldowns::of(store),
            checked: Checked::of(store),
            tickets: None,
            rights: None,
            forgets: None,
            leftovers: None,
            asking: None,
            limits: None,
            observing: None,
            silent: false,
            calm: false,
            loud: false,
        };
        for client in 0..world.clients.len() {
            for server in 0..servers {
                world.after(Duration::ZERO, Event::Connect { client, server });
            }
            world.after(Duration::ZERO, Event::Wake(client));
        }
        world
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some(event) = self.next_event() {
            if self.now.since(self.start) > HEALED {
                return Err("somebody was never served".into());
            }
            self.happen(event);
            self.check()?;
            self.check_tickets()?;
            self.check_endings()?;
            self.check_asked()?;
            self.check_limits()?;
            self.check_naps()?;
            self.check_cooldowns()?;
            self.check_leftovers()?;
            self.check_errors()?;
            self.check_observers()?;
            self.check_history()?;
            if self.is_over() {
                return Ok(());
            }
        }
        Err("nothing more happens, though somebody waits".into())
    }

    /// The next thing that happens; it is that late now.
    fn next_event(&mut self) -> Option<Event> {
        while let Some(Reverse((at, number))) = self.events.pop() {
            if let Some(event) = self.pending.remove(&number) {
                if at > self.now {
                    self.clock.advance(at.since(self.now));
                    self.now = at;
                }
                return Some(event);
            }
        }
        None
    }

    fn happen(&mut self, event: Event) {
        if let Event::Answer(wire, ..)
        | Event::Push(wire, _)
        | Event::Refused(wire, ..)
        | Event::Told(wire, _)
        | Event::Said(wire, ..)
        | Event::Replicated(wire, _) = &event
        {
            let resumes = self.clients[wire.client].paused_until;
            if self.now < resumes {
                // It lies in the socket's buffer.
                return self.at(resumes, event);
            }
        }
        match event {
            Event::Request(wire, sent) => {
                let resumes = self.servers[wire.server].paused_until;
                if self.now < resumes {
                    return self.at(resumes, Event::Request(wire, sent));
                }
                self.execute(wire, sent);
            }
            Event::Answer(wire, sent, reply) => {
                if self.hears(wire) {
                    let now = self.now;
                    self.say(|| format!("{wire} reads {reply:?}"));
                    self.notified_by(wire.client, &sent.call, &reply);
                    self.note_waiters(wire.client, &sent.call, &reply);
                    self.queue(wire).replied(now, sent, Ok(reply));
                    self.turn(wire.client);
                }
            }
            Event::Push(wire, message) => {
                if self.hears(wire) {
                    self.say(|| format!("{wire} hears of {message:?}"));
                    self.note_message(wire.client, &message);
                    let now = self.now;
                    self.queue(wire).heard(now, message);
                    self.turn(wire.client);
                }
            }
            Event::Wake(client) => {
                let wakes_at = &mut self.clients[client].wakes_at;
                wakes_at.take_if(|at| *at <= self.now);
                self.turn(client);
            }
            Event::Wait(wire, time) => self.wait(wire, time),
            Event::Replicated(wire, enough) => self.replicated(wire, enough),
            Event::Connect { client, server } => self.connect(client, server),
            Event::Fault => self.fault(),
            Event::Cut { client, server } => self.disconnect(client, server),
            Event::FailOver => self.fail_over(),
            Event::Rights => self.change_rights(),
            Event::AskToYield => self.ask_to_yield(),
            Event::Look(client) => self.look(client),
            Event::Looked(wire, held) => self.tell(wire, held),
            Event::Told(wire, standings) => self.told(wire, standings),
            Event::Status(wire, key, reply) => self.say_status(wire, key, reply),
            Event::Said(wire, reply, status) => self.hear_status(wire, reply, status),
            Event::Adopt(client, ticket) => self.adopt(client, &ticket),
            Event::Refused(wire, sent, trouble) => self.refused(wire, sent, trouble),
            Event::Topology(client) => self.hear_topology(client),
            Event::Move(key) => self.move_on(key),
            Event::TakeAway => {
                if self.faulty() {
                    self.revoke();
                    self.plan_to_revoke();
                }
            }
        }
    }

    /// A client is about to hear of this.
    fn note_message(&mut self, client: usize, message: &Message) {
        match message {
            Message::Revoked(token) => self.notified(client, *token),
            Message::Wanted { tokens, .. } => self.note_asked(client, tokens),
            Message::Granted(grant) => self.note_grant(grant.token),
            _ => {}
        }
    }

    /// Those who hold a key within their deadlines may do so together, and the
    /// fence of who is alone is the highest yet.
    fn check(&mut self) -> Result<(), String> {
        let mut held = Holders::default();
        for (number, client) in self.clients.iter().enumerate() {
            for (guard, kind) in client.holds() {
                let key = guard.key();
                let fence = guard.fencing_token().get();
                if self.is_excused(number, key, fence) {
                    continue;
                }
                if kind == Kind::Exclusive && !self.servers[0].knows(key, fence) {
                    return Err(format!(
                        "client {number} holds {key} under fence {fence}, unknown to the server"
                    ));
                }
                held.join(key, number, kind)
                    .map_err(|beside| format!("client {number} holds {key} beside {beside}"))?;
                let highest = self.highest.entry(key.clone()).or_default();
                if kind == Kind::Exclusive && fence < *highest {
                    return Err(format!("fence {fence} after {highest} on {key}"));
                }
                *highest = fence.max(*highest);
                let this = (fence, number, guard.lease().id);
                let writer = self.writers.get(key);
                if let Some(writer) = writer.filter(|it| fence <= it.0 && this != **it) {
                    return Err(format!(
                        "fence {fence} of {number} on {key} after {writer:?}"
                    ));
                }
                if kind == Kind::Exclusive {
                    self.writers.insert(key.clone(), this);
                }
            }
        }
        self.check_margins(held)
    }

    /// Whoever waits without a limit is served, or has heard of a missing right.
    fn check_errors(&mut self) -> Result<(), String> {
        let rights = self.rights.is_some();
        let mut clients = self.clients.iter_mut();
        let error = clients.find_map(|it| it.error.take()).filter(|_| !rights);
        error.map_or(Ok(()), |it| {
            Err(format!("somebody who waits for ever hears {it}"))
        })
    }

    fn is_over(&self) -> bool {
        !self.faulty() && self.clients.iter().all(|it| it.dead || it.is_idle())
    }

    fn faulty(&self) -> bool {
        !self.calm && self.now.since(self.start) < FAULTS
    }

    fn after(&mut self, delay: Duration, event: Event) {
        self.at(self.now.after(delay), event);
    }

    fn at(&mut self, moment: Moment, event: Event) {
        self.count += 1;
        self.events.push(Reverse((moment, self.count)));
        self.pending.insert(self.count, event);
    }

    fn say(&self, text: impl FnOnce() -> String) {
        if self.loud {
            println!("{:>12?} {}", self.now.since(self.start), text());
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {} at server {}", self.client, self.server)
    }
}

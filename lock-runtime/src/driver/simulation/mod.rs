//! Drivers, watchdogs and model servers on one clock, with delays, broken
//! connections, pauses, crashes and cancellations drawn from a seed: at most one
//! holder within its deadline, and everybody who lives is served.
//!
//! `LOCK_SEEDS=FROM..TO` chooses the seeds, `LOCK_SEED=N` one of them with a
//! trace of what happened.

mod chains;
mod client;
mod disputes;
mod failover;
mod faults;
mod hot;
mod server;
mod sharded;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::backend::redis::protocol::call::Sent;
use crate::backend::redis::protocol::message::{Grant, Message};
use crate::backend::redis::protocol::reply::{Reply, Trouble};
use crate::backend::redis::queue::Queue;
use crate::base::clock::{Clock, Moment};
use crate::vocabulary::key::LockKey;
use crate::vocabulary::kind::Kind;

use chains::Counts;
use client::{Client, Link};
use disputes::Dispute;
use failover::{Replica, Safeguard};
use server::Server;
use sharded::Shards;

const CLIENTS: usize = 4;
/// Faults happen in the first part, healing is watched in the second.
const FAULTS: Duration = Duration::from_secs(30);
// A long line that grew meanwhile takes its time.
const HEALED: Duration = Duration::from_secs(600);

/// What is on its way, and when it arrives.
struct World {
    clock: Clock,
    now: Moment,
    start: Moment,
    rng: Rng,
    servers: Vec<Server>,
    /// One that may take the place of the first.
    replica: Option<Replica>,
    /// Where each lock is, if they are divided.
    shards: Option<Shards>,
    clients: Vec<Client>,
    events: BinaryHeap<Reverse<(Moment, u64)>>,
    pending: BTreeMap<u64, Event>,
    count: u64,
    highest: BTreeMap<LockKey, u64>,
    counts: Counts,
    disputes: Vec<Dispute>,
    /// Whether nothing goes wrong, and no way is long.
    calm: bool,
    loud: bool,
}

/// Where the locks are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Store {
    One,
    /// One whose place a replica may take.
    Failing(Safeguard),
    /// Five, of which a majority decides.
    Majority,
    /// Two that divide the locks.
    Sharded,
}

impl Store {
    fn servers(self) -> usize {
        match self {
            Self::One | Self::Failing(_) => 1,
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
            if seed % 3 == 1 {
                world.servers[0].plain.insert(0);
            }
        }
        if store == Store::One && seed % 4 == 1 {
            world.plan_to_take_away();
        }
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
            servers: (0..servers).map(|_| Server::new(now)).collect(),
            replica: match store {
                Store::Failing(safeguard) => Some(Replica::new(safeguard, now)),
                _ => None,
            },
            shards: (store == Store::Sharded).then(|| Shards::new(clients.len(), now)),
            clients,
            events: BinaryHeap::new(),
            pending: BTreeMap::new(),
            count: 0,
            highest: BTreeMap::new(),
            counts: Counts::default(),
            disputes: Vec::new(),
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
                    self.told_by(wire.client, &sent.call, &reply);
                    self.queue(wire).replied(now, sent, Ok(reply));
                    self.turn(wire.client);
                }
            }
            Event::Push(wire, message) => {
                if self.hears(wire) {
                    self.say(|| format!("{wire} hears of {message:?}"));
                    if let Message::Revoked(token) = message {
                        self.told(wire.client, token);
                    }
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
            Event::Refused(wire, sent, trouble) => self.refused(wire, sent, trouble),
            Event::Topology(client) => self.hear_topology(client),
            Event::Move(key) => self.move_on(key),
            Event::TakeAway => {
                if self.faulty() {
                    self.take_away();
                    self.plan_to_take_away();
                }
            }
        }
    }

    /// A late command of an old connection runs too: its answer is not heard.
    fn execute(&mut self, wire: Wire, sent: Sent) {
        if self.is_refused(wire, &sent) {
            return;
        }
        self.counts.asks(wire.client, &sent.call);
        let server = &mut self.servers[wire.server];
        let reply = server.execute(self.now, wire.client, &sent.call);
        let published = std::mem::take(&mut server.published);
        self.say(|| format!("{wire} {:?} -> {reply:?}", sent.call));
        if self.replica.is_some() {
            self.replicate();
        }
        self.publish(wire.server, published);
        // Answers keep their order.
        let delay = self.latency();
        let at = self.now.after(delay).max(self.link(wire).answers_until);
        self.link(wire).answers_until = at;
        self.at(at, Event::Answer(wire, sent, reply));
    }

    fn publish(&mut self, server: usize, published: Vec<(usize, Grant)>) {
        for (client, grant) in published {
            let generation = self.clients[client].links[server].generation;
            let to = Wire {
                client,
                server,
                generation,
            };
            if let Some(key) = grant.key() {
                self.counts
                    .chained(client, &key, grant.fence, &grant.followers);
            }
            // Push and reply take different ways through the client.
            let delay = self.latency() * self.rng.u32(1..4);
            let push = Event::Push(to, Message::Granted(grant));
            if self.faulty() && self.rng.u8(..) < 10 {
                continue;
            }
            self.after(delay, push);
        }
    }

    /// One turn of a client's driver, as `Driver::drain` does it.
    fn turn(&mut self, client: usize) {
        let now = self.now;
        let asks = self.calm || self.faulty();
        let it = &mut self.clients[client];
        if it.dead {
            return;
        }
        if now < it.paused_until {
            let resumes = it.paused_until;
            self.at(resumes, Event::Wake(client));
            return;
        }
        it.act(now, asks);
        it.drive(now);
        for (key, fence) in it.entered.drain(..) {
            self.counts.entered(&key, fence);
        }
        let wakeup = it.next_wakeup();
        self.route(client);
        for server in 0..self.servers.len() {
            let link = &mut self.clients[client].links[server];
            let generation = link.generation;
            let wire = Wire {
                client,
                server,
                generation,
            };
            let calls = match self.shards {
                Some(_) => std::mem::take(&mut link.outbox),
                None if link.up => link.queue.calls(),
                None => Vec::new(),
            };
            for sent in calls {
                let delay = self.latency();
                // Requests keep their order.
                let at = now.after(delay).max(self.link(wire).requests_until);
                self.link(wire).requests_until = at;
                self.at(at, Event::Request(wire, sent));
            }
            self.ask_replica(wire);
        }
        if let Some(at) = wakeup.map(|at| at.max(now.after(Duration::from_micros(1)))) {
            let known = &mut self.clients[client].wakes_at;
            if known.is_none_or(|known| at < known) {
                *known = Some(at);
                self.at(at, Event::Wake(client));
            }
        }
    }

    /// Those who hold a key within their deadlines may do so together, and the
    /// fence of who is alone is the highest yet.
    fn check(&mut self) -> Result<(), String> {
        let mut held: BTreeMap<LockKey, Vec<(usize, Kind)>> = BTreeMap::new();
        for (number, client) in self.clients.iter().enumerate() {
            for (guard, kind) in client.holds() {
                let key = guard.key();
                let fence = guard.fencing_token().get();
                if self.is_excused(number, key, fence) {
                    continue;
                }
                let beside = held.entry(key.clone()).or_default();
                let together = beside.iter().all(|(_, other)| *other == kind);
                if !together || !kind.admits(beside.len()) {
                    return Err(format!("client {number} holds {key} beside {beside:?}"));
                }
                beside.push((number, kind));
                let highest = self.highest.entry(key.clone()).or_default();
                if kind == Kind::Exclusive && fence < *highest {
                    return Err(format!("fence {fence} after {highest} on {key}"));
                }
                *highest = fence.max(*highest);
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        !self.faulty() && self.clients.iter().all(|it| it.dead || it.is_idle())
    }

    fn faulty(&self) -> bool {
        !self.calm && self.now.since(self.start) < FAULTS
    }

    fn hears(&self, wire: Wire) -> bool {
        let client = &self.clients[wire.client];
        let link = &client.links[wire.server];
        link.up && link.generation == wire.generation && !client.dead
    }

    fn link(&mut self, wire: Wire) -> &mut Link {
        &mut self.clients[wire.client].links[wire.server]
    }

    /// What takes in what comes over a connection.
    fn queue(&mut self, wire: Wire) -> &mut Queue {
        let of_all = self.shards.is_some();
        let links = &mut self.clients[wire.client].links;
        &mut links[if of_all { 0 } else { wire.server }].queue
    }

    fn latency(&mut self) -> Duration {
        if self.calm {
            return Duration::from_micros(self.rng.u64(50..150));
        }
        let slow = self.rng.u8(..) < 4;
        Duration::from_micros(self.rng.u64(if slow { 1..400_000 } else { 50..2_000 }))
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

fn simulate(seed: u64, store: Store, loud: bool) -> Counts {
    let mut world = World::new(seed, store, loud);
    if let Err(fault) = world.run() {
        panic!("seed {seed}: {fault} (LOCK_SEED={seed} shows what happened)");
    }
    world.counts
}

#[test]
fn one_holder_at_a_time_and_everybody_is_served() {
    simulate_all("0..250", Store::One);
}

#[test]
fn a_majority_has_one_holder_at_a_time_and_serves_everybody() {
    simulate_all("0..50", Store::Majority);
}

#[test]
fn a_failover_makes_no_second_holder_where_replicas_confirm() {
    simulate_all("0..80", Store::Failing(Safeguard::Replicas));
}

#[test]
fn a_failover_makes_no_second_holder_with_a_quarantine() {
    simulate_all("0..80", Store::Failing(Safeguard::Quarantine));
}

#[test]
fn a_failover_makes_a_second_holder_where_nobody_does_anything_about_it() {
    let two_hold = |seed| {
        let outcome = World::new(seed, Store::Failing(Safeguard::Nothing), false).run();
        outcome.is_err_and(|fault| fault.contains("beside"))
    };
    assert!((0..200).any(two_hold));
}

#[test]
fn a_seed_shows_the_same_again() {
    for store in [Store::One, Store::Sharded, Store::Majority] {
        let [once, again] = [(); 2].map(|()| simulate(7, store, false).to_string());
        assert_eq!(once, again);
    }
}

fn simulate_all(default: &str, store: Store) {
    if let Ok(seed) = std::env::var("LOCK_SEED") {
        let seed = seed.parse().expect("LOCK_SEED is a number");
        println!("{}", simulate(seed, store, true));
        return;
    }
    let seeds = std::env::var("LOCK_SEEDS").unwrap_or_else(|_| default.into());
    let (from, to) = seeds.split_once("..").expect("LOCK_SEEDS is FROM..TO");
    let from: u64 = from.parse().expect("a number");
    let to: u64 = to.parse().expect("a number");
    let started = Instant::now();
    let mut counts = Counts::default();
    for seed in from..to {
        counts.add(&simulate(seed, store, false));
    }
    let seconds = started.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = (to - from) as f64 / seconds;
    println!("simulated seeds {from}..{to} of {store:?}: {rate:.0} a second; {counts}");
}

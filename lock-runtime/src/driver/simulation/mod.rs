//! Drivers, watchdogs and a model server on one clock, with delays, broken
//! connections, pauses, crashes and cancellations drawn from a seed: at most one
//! holder within its deadline, and everybody who lives is served.
//!
//! `LOCK_SEEDS=FROM..TO` chooses the seeds, `LOCK_SEED=N` one of them with a
//! trace of what happened.

mod client;
mod failover;
mod faults;
mod server;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::backend::redis::protocol::call::Sent;
use crate::backend::redis::protocol::message::{Grant, Message};
use crate::backend::redis::protocol::reply::Reply;
use crate::base::clock::{Clock, Moment};
use crate::vocabulary::key::LockKey;
use crate::vocabulary::kind::Kind;

use client::Client;
use failover::{Replica, Safeguard};
use server::Server;

const CLIENTS: usize = 4;
/// Faults happen in the first part, healing is watched in the second.
const FAULTS: Duration = Duration::from_secs(30);
const HEALED: Duration = Duration::from_secs(180);

/// What is on its way, and when it arrives.
struct World {
    clock: Clock,
    now: Moment,
    start: Moment,
    rng: Rng,
    server: Server,
    /// One that may take the server's place.
    replica: Option<Replica>,
    clients: Vec<Client>,
    events: BinaryHeap<Reverse<(Moment, u64)>>,
    pending: HashMap<u64, Event>,
    count: u64,
    highest: BTreeMap<LockKey, u64>,
    loud: bool,
}

enum Event {
    Request {
        client: usize,
        generation: u64,
        sent: Sent,
    },
    Answer {
        client: usize,
        generation: u64,
        sent: Sent,
        reply: Reply,
    },
    Push {
        client: usize,
        generation: u64,
        grant: Grant,
    },
    /// A question whether the replica has everything.
    Wait {
        client: usize,
        generation: u64,
        time: Duration,
    },
    Replicated {
        client: usize,
        generation: u64,
        enough: bool,
    },
    Wake(usize),
    Connect(usize),
    Fault,
}

impl World {
    fn new(seed: u64, replica: Option<Replica>, loud: bool) -> Self {
        fastrand::seed(seed);
        let clock = Clock::manual();
        clock.advance(Duration::from_secs(1));
        let now = clock.now();
        let mut rng = Rng::with_seed(seed);
        let safeguard = replica.as_ref().map(|it| it.safeguard);
        let replicated = safeguard == Some(Safeguard::Replicas);
        let clients = (0..CLIENTS)
            .map(|_| Client::new(clock.clone(), rng.fork(), replicated))
            .collect();
        let mut world = Self {
            clock,
            now,
            start: now,
            rng,
            server: Server::default(),
            replica,
            clients,
            events: BinaryHeap::new(),
            pending: HashMap::new(),
            count: 0,
            highest: BTreeMap::new(),
            loud,
        };
        for client in 0..CLIENTS {
            world.after(Duration::ZERO, Event::Connect(client));
            world.after(Duration::ZERO, Event::Wake(client));
        }
        world.after(Duration::from_millis(100), Event::Fault);
        world
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some(Reverse((at, number))) = self.events.pop() {
            let Some(event) = self.pending.remove(&number) else {
                continue;
            };
            if at > self.now {
                self.clock.advance(at.since(self.now));
                self.now = at;
            }
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

    fn happen(&mut self, event: Event) {
        if let Event::Answer { client, .. }
        | Event::Push { client, .. }
        | Event::Replicated { client, .. } = &event
        {
            let resumes = self.clients[*client].paused_until;
            if self.now < resumes {
                // It lies in the socket's buffer.
                return self.at(resumes, event);
            }
        }
        match event {
            Event::Request {
                client,
                generation,
                sent,
            } => self.execute(client, generation, sent),
            Event::Answer {
                client,
                generation,
                sent,
                reply,
            } => {
                if self.hears(client, generation) {
                    let now = self.now;
                    self.say(|| format!("client {client} reads {reply:?}"));
                    self.clients[client].queue.replied(now, sent, Ok(reply));
                    self.turn(client);
                }
            }
            Event::Push {
                client,
                generation,
                grant,
            } => {
                if self.hears(client, generation) {
                    self.say(|| format!("client {client} hears of {grant:?}"));
                    let now = self.now;
                    let queue = &mut self.clients[client].queue;
                    queue.heard(now, Message::Granted(grant));
                    self.turn(client);
                }
            }
            Event::Wake(client) => {
                let wakes_at = &mut self.clients[client].wakes_at;
                wakes_at.take_if(|at| *at <= self.now);
                self.turn(client);
            }
            Event::Wait {
                client,
                generation,
                time,
            } => self.wait(client, generation, time),
            Event::Replicated {
                client,
                generation,
                enough,
            } => self.replicated(client, generation, enough),
            Event::Connect(client) => self.connect(client),
            Event::Fault => self.fault(),
        }
    }

    /// A late command of an old connection runs too: its answer is not heard.
    fn execute(&mut self, client: usize, generation: u64, sent: Sent) {
        let reply = self.server.execute(self.now, client, &sent.call);
        self.say(|| format!("server: client {client} {:?} -> {reply:?}", sent.call));
        if self.replica.is_some() {
            self.replicate();
        }
        for (to, grant) in std::mem::take(&mut self.server.published) {
            let generation = self.clients[to].generation;
            // Push and reply take different ways through the client.
            let delay = self.latency() * self.rng.u32(1..4);
            let push = Event::Push {
                client: to,
                generation,
                grant,
            };
            if self.faulty() && self.rng.u8(..) < 10 {
                continue;
            }
            self.after(delay, push);
        }
        // Answers keep their order.
        let delay = self.latency();
        let at = self
            .now
            .after(delay)
            .max(self.clients[client].answers_until);
        self.clients[client].answers_until = at;
        let answer = Event::Answer {
            client,
            generation,
            sent,
            reply,
        };
        self.at(at, answer);
    }

    /// One turn of a client's driver, as `Driver::drain` does it.
    fn turn(&mut self, client: usize) {
        let now = self.now;
        let faulty = self.faulty();
        let it = &mut self.clients[client];
        if it.dead {
            return;
        }
        if now < it.paused_until {
            let resumes = it.paused_until;
            self.at(resumes, Event::Wake(client));
            return;
        }
        it.act(now, faulty);
        it.drive(now);
        let (generation, wakeup) = (it.generation, it.next_wakeup());
        let calls = if it.up { it.queue.calls() } else { Vec::new() };
        for sent in calls {
            let delay = self.latency();
            let it = &mut self.clients[client];
            // Requests keep their order.
            let at = now.after(delay).max(it.requests_until);
            it.requests_until = at;
            let request = Event::Request {
                client,
                generation,
                sent,
            };
            self.at(at, request);
        }
        self.ask_replica(client);
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
                let beside = held.entry(key.clone()).or_default();
                let together = beside.iter().all(|(_, other)| *other == kind);
                if !together || !kind.admits(beside.len()) {
                    return Err(format!("client {number} holds {key} beside {beside:?}"));
                }
                beside.push((number, kind));
                let fence = guard.fencing_token().get();
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
        self.now.since(self.start) < FAULTS
    }

    fn hears(&self, client: usize, generation: u64) -> bool {
        let it = &self.clients[client];
        it.up && it.generation == generation && !it.dead
    }

    fn latency(&mut self) -> Duration {
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

fn simulate(seed: u64, safeguard: Option<Safeguard>, loud: bool) {
    let replica = safeguard.map(Replica::new);
    if let Err(fault) = World::new(seed, replica, loud).run() {
        panic!("seed {seed}: {fault} (LOCK_SEED={seed} shows what happened)");
    }
}

#[test]
fn one_holder_at_a_time_and_everybody_is_served() {
    simulate_all("0..2000", None);
}

#[test]
fn a_failover_makes_no_second_holder_where_replicas_confirm() {
    simulate_all("0..500", Some(Safeguard::Replicas));
}

#[test]
fn a_failover_makes_no_second_holder_with_a_quarantine() {
    simulate_all("0..500", Some(Safeguard::Quarantine));
}

#[test]
fn a_failover_makes_a_second_holder_where_nobody_does_anything_about_it() {
    let two_hold = |seed| {
        let replica = Some(Replica::new(Safeguard::Nothing));
        let outcome = World::new(seed, replica, false).run();
        outcome.is_err_and(|fault| fault.contains("beside"))
    };
    assert!((0..200).any(two_hold));
}

fn simulate_all(default: &str, safeguard: Option<Safeguard>) {
    if let Ok(seed) = std::env::var("LOCK_SEED") {
        let seed = seed.parse().expect("LOCK_SEED is a number");
        return simulate(seed, safeguard, true);
    }
    let seeds = std::env::var("LOCK_SEEDS").unwrap_or_else(|_| default.into());
    let (from, to) = seeds.split_once("..").expect("LOCK_SEEDS is FROM..TO");
    let from: u64 = from.parse().expect("a number");
    let to: u64 = to.parse().expect("a number");
    let started = Instant::now();
    for seed in from..to {
        simulate(seed, safeguard, false);
    }
    let seconds = started.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = (to - from) as f64 / seconds;
    println!("simulated seeds {from}..{to}: {rate:.0} a second");
}

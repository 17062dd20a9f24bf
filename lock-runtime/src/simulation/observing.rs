//! Observers of elections: each is shown leaders that lead, in the order of their fences, and misses none that leads
//! for some seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::sync::mpsc;

use super::failover::Safeguard;
use super::seeds::{is_loud, run, seeds};
use super::{CLIENTS, Event, FAULTS, Store, Wire, World};
use crate::base::clock::Moment;
use crate::types::answer::Reply;
use crate::types::holder::Status;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::leader::Leader;

/// What was cut off is connected again by then.
const CALM: Duration = Duration::from_secs(5);
/// Time for the leader's note and two looks, each with slow messages.
const SOON: Duration = Duration::from_secs(3);

/// A client that leads an election under a fence.
type Led = (usize, LockKey, u64);

/// Who led, and what each client was shown.
pub(super) struct Observing {
    /// Each leader that a client has been at some time.
    led: BTreeSet<Led>,
    /// Since when those lead that do so now and are awake, while nothing goes wrong.
    lead: BTreeMap<Led, Moment>,
    /// The views of each client.
    views: Vec<[View; 2]>,
    /// How many leaders had to be shown.
    expected: usize,
}

/// What a client was shown of one election.
struct View {
    key: LockKey,
    leaders: mpsc::UnboundedReceiver<Leader>,
    last: u64,
}

impl World {
    /// Writers lead elections, which all clients observe.
    fn observe(&mut self) {
        let views = self.clients.iter_mut().enumerate().map(|(number, client)| {
            client.leads = Some(number.to_string().into());
            ["a", "b"].map(|key| {
                let (observer, leaders) = mpsc::unbounded_channel();
                let key = LockKey::of(key);
                client.observe(key.clone(), observer);
                View {
                    key,
                    leaders,
                    last: 0,
                }
            })
        });
        self.observing = Some(Observing {
            led: BTreeSet::new(),
            lead: BTreeMap::new(),
            views: views.collect(),
            expected: 0,
        });
    }

    /// The looks of a client are on their way; without a connection they fail.
    pub(super) fn send_looks(&mut self, client: usize) {
        for (key, reply) in std::mem::take(&mut self.clients[client].looks) {
            let link = &self.clients[client].links[0];
            if link.up {
                let wire = Wire {
                    client,
                    server: 0,
                    generation: link.generation,
                };
                let delay = self.latency();
                self.after(delay, Event::Status(wire, key, reply));
            }
        }
    }

    /// The server says who holds a lock.
    pub(super) fn say_status(&mut self, wire: Wire, key: LockKey, reply: Reply<Status>) {
        let resumes = self.servers[wire.server].paused_until;
        if self.now < resumes {
            return self.at(resumes, Event::Status(wire, key, reply));
        }
        let status = self.servers[wire.server].status(self.now, &key);
        let delay = self.latency();
        self.after(delay, Event::Said(wire, reply, status));
    }

    /// A client hears who holds a lock.
    pub(super) fn hear_status(&mut self, wire: Wire, reply: Reply<Status>, status: Status) {
        if self.hears(wire) {
            let _ = reply.send(Ok(status));
            self.turn(wire.client);
        }
    }

    /// A client has got a lock, even if it could not be delivered to its caller in time.
    pub(super) fn note_leader(&mut self, client: usize, key: &LockKey, fence: u64) {
        if let Some(observing) = &mut self.observing {
            observing.led.insert((client, key.clone(), fence));
        }
    }

    /// Whoever is shown has led, after those that were shown before, and all are shown that lead for long.
    pub(super) fn check_observers(&mut self) -> Result<(), String> {
        let Some(observing) = &mut self.observing else {
            return Ok(());
        };
        observing.look()?;
        let (now, calm) = (self.now, self.start.after(FAULTS).after(CALM));
        let mut present = BTreeMap::new();
        for (number, client) in self.clients.iter().enumerate() {
            for (guard, _) in client.holds().filter(|(_, it)| *it == Kind::Exclusive) {
                let led = (number, guard.key().clone(), guard.fencing_token().get());
                let since = observing.lead.remove(&led).unwrap_or(now);
                present.insert(led, since.max(calm).max(client.paused_until));
            }
        }
        observing.lead = present;
        for ((leader, key, fence), since) in &observing.lead {
            for (number, client) in self.clients.iter().enumerate() {
                let awake = since.max(&client.paused_until);
                if client.dead || now < awake.after(SOON) {
                    continue;
                }
                observing.expected += 1;
                let last = observing.last(number, key);
                if last < *fence {
                    return Err(format!(
                        "client {number} saw {last} last on {key}, where client {leader} leads under {fence}"
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Observing {
    /// Takes in what the clients were shown.
    fn look(&mut self) -> Result<(), String> {
        for (number, views) in self.views.iter_mut().enumerate() {
            for View { key, leaders, last } in views {
                while let Ok(Leader {
                    data,
                    fencing_token,
                    ..
                }) = leaders.try_recv()
                {
                    let fence = fencing_token.get();
                    if fence <= *last {
                        return Err(format!(
                            "client {number} sees {fence} of {key} after {last}"
                        ));
                    }
                    *last = fence;
                    let leader = data.parse().unwrap_or(usize::MAX);
                    if !self.led.contains(&(leader, key.clone(), fence)) {
                        return Err(format!(
                            "client {number} sees {data} lead {key} under {fence}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    fn last(&self, client: usize, key: &LockKey) -> u64 {
        let mut views = self.views[client].iter().filter(|it| it.key == *key);
        views.next().map_or(0, |it| it.last)
    }
}

/// How often a leader had to be shown, and how many led.
fn elections(store: Store) -> (usize, usize) {
    let (mut expected, mut led) = (0, 0);
    for seed in seeds("0..250").step_by(5) {
        let mut world = World::of(seed, store, CLIENTS);
        world.loud = is_loud();
        world.observe();
        world.after(Duration::from_millis(100), Event::Fault);
        run(&mut world, seed);
        if let Some(observing) = world.observing {
            expected += observing.expected;
            led += observing.led.len();
        }
    }
    (expected, led)
}

#[test]
fn observers_see_whoever_leads_for_long_in_the_order_of_fences() {
    let failing = [Safeguard::Replicas, Safeguard::Quarantine].map(Store::Failing);
    for store in [Store::One].into_iter().chain(failing) {
        let (expected, led) = elections(store);
        println!("{store:?}: {led} leaders, {expected} looks at one that leads for long");
        // A single one may be without.
        assert!(expected > 0 || is_loud());
    }
}

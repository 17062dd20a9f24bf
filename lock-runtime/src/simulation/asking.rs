//! Holders that are asked to yield their locks: those who hold them then hear of it, and nobody who comes later, also
//! in a chain.

use std::collections::BTreeSet;
use std::time::Duration;

use super::seeds::{seeds, worlds};
use super::{Event, Store, Wire, World};
use crate::backend::queue::protocol::call::Bearer;
use crate::backend::queue::protocol::message::Message;
use crate::backend::token::Token;
use crate::types::key::LockKey;

/// The pause before somebody asks again, in milliseconds.
const PAUSES: std::ops::Range<u64> = 5..100;
/// The same before a client looks whether it was asked, where nobody notifies it.
const LOOKS: std::ops::Range<u64> = 2..60;

/// A client that holds a lock under a fence.
type Held = (usize, LockKey, u64);

/// Who was asked, and how many have heard of it.
pub(super) struct Asking {
    asked: BTreeSet<Held>,
    /// Those who have to know it now.
    reached: Vec<Held>,
    /// The tokens that the server has noted, with the fences of those who had the locks then.
    noted: Vec<(Token, u64)>,
    heard: usize,
}

/// What a server that notifies nobody says of a holder.
pub(super) enum Standing {
    Lost,
    Holds,
    Asked,
}

impl World {
    /// Some holders are asked to yield.
    fn ask_holders(&mut self) {
        self.asking = Some(Asking {
            asked: BTreeSet::new(),
            reached: Vec::new(),
            noted: Vec::new(),
            heard: 0,
        });
        self.after(Duration::ZERO, Event::AskToYield);
        for client in 0..self.clients.len() {
            if self.servers[0].has_notes() {
                self.after(Duration::ZERO, Event::Look(client));
            }
        }
    }

    /// Somebody asks for a lock: the server notes it, or each holder is notified.
    pub(super) fn ask_to_yield(&mut self) {
        if !self.faulty() {
            return;
        }
        let key = LockKey::of(["a", "b"][self.rng.usize(..2)]);
        self.say(|| format!("somebody asks for {key}"));
        if self.servers[0].has_notes() {
            self.note_ask(&key);
        } else {
            self.notify_holders(&key);
        }
        let pause = Duration::from_millis(self.rng.u64(PAUSES));
        self.after(pause, Event::AskToYield);
    }

    fn note_ask(&mut self, key: &LockKey) {
        let server = &mut self.servers[0];
        let (owner, fence) = (server.owner(self.now, key), server.latest(key));
        if let (Some((client, token)), Some(asking)) = (owner, &mut self.asking) {
            asking.asked.insert((client, key.clone(), fence));
            asking.noted.push((token, fence));
        }
    }

    fn notify_holders(&mut self, key: &LockKey) {
        for server in 0..self.servers.len() {
            for (client, token) in self.servers[server].holders(self.now, key) {
                let generation = self.clients[client].links[server].generation;
                let to = Wire {
                    client,
                    server,
                    generation,
                };
                let (channel, tokens) = ("asker".into(), vec![token]);
                let delay = self.latency();
                self.after(delay, Event::Push(to, Message::Wanted { channel, tokens }));
            }
        }
    }

    /// A client is about to hear that the locks with these tokens are asked for: whoever of it has them now is asked.
    pub(super) fn note_asked(&mut self, client: usize, tokens: &[Token]) {
        let Some(asking) = &mut self.asking else {
            return;
        };
        for (guard, _) in self.clients[client].holds() {
            let known_by = guard.lease().enclosing().next().map(|it| it.token);
            if tokens.iter().any(|it| Some(it.number()) == known_by) {
                let held = (client, guard.key().clone(), guard.fencing_token().get());
                asking.asked.insert(held.clone());
                asking.reached.push(held);
            }
        }
    }

    /// A client looks whether the locks that it holds were asked for. Neither that nor the answer keeps an order with its
    /// other calls.
    pub(super) fn look(&mut self, client: usize) {
        if !self.faulty() {
            return;
        }
        let link = &self.clients[client].links[0];
        let held = link.queue.held_since(self.now);
        if link.up && !held.is_empty() {
            let wire = Wire {
                client,
                server: 0,
                generation: link.generation,
            };
            let delay = self.latency();
            self.after(delay, Event::Looked(wire, held));
        }
        let pause = Duration::from_millis(self.rng.u64(LOOKS));
        self.after(pause, Event::Look(client));
    }

    /// The server tells a client what it knows of these holders.
    pub(super) fn tell(&mut self, wire: Wire, held: Vec<Bearer>) {
        let standings = held.into_iter().map(|bearer| {
            let standing = self.standing(&bearer);
            (bearer, standing)
        });
        let standings = standings.collect();
        let delay = self.latency() * self.rng.u32(1..30);
        self.after(delay, Event::Told(wire, standings));
    }

    fn standing(&self, bearer: &Bearer) -> Standing {
        let (server, key) = (&self.servers[0], &bearer.terms.key);
        if !server.is_held_by(self.now, key, bearer.token) {
            return Standing::Lost;
        }
        let noted = self.asking.iter().flat_map(|it| &it.noted);
        let mut asked = noted.filter(|it| **it == (bearer.token, server.latest(key)));
        asked.next().map_or(Standing::Holds, |_| Standing::Asked)
    }

    /// A client hears of its locks.
    pub(super) fn told(&mut self, wire: Wire, standings: Vec<(Bearer, Standing)>) {
        if !self.hears(wire) {
            return;
        }
        for (bearer, standing) in standings {
            match standing {
                Standing::Holds => {}
                Standing::Lost => {
                    let now = self.now;
                    let lost = Message::Revoked(bearer.token);
                    self.notified(wire.client, bearer.token);
                    self.queue(wire).heard(now, lost);
                }
                Standing::Asked => {
                    self.note_told(wire.client, &bearer);
                    self.queue(wire).wanted_of(&bearer);
                }
            }
        }
        self.turn(wire.client);
    }

    /// The holder that the server was asked about, if it is still there, is to know.
    fn note_told(&mut self, client: usize, bearer: &Bearer) {
        let mut held = self.clients[client].holds().map(|(guard, _)| guard);
        let guard = held.find(|it| it.lease().id == bearer.terms.id);
        if let (Some(guard), Some(asking)) = (guard, &mut self.asking) {
            let held = (client, guard.key().clone(), guard.fencing_token().get());
            asking.reached.push(held);
        }
    }

    /// Nobody has heard that it was asked who was not, and whoever has to know does.
    pub(super) fn check_asked(&mut self) -> Result<(), String> {
        let Some(asking) = &mut self.asking else {
            return Ok(());
        };
        let reached = std::mem::take(&mut asking.reached);
        for (number, client) in self.clients.iter().enumerate() {
            for (guard, _) in client.holds() {
                let (key, fence) = (guard.key(), guard.fencing_token().get());
                let held = (number, key.clone(), fence);
                let (is_asked, was_asked) = (guard.is_asked(), asking.asked.contains(&held));
                if is_asked && !was_asked {
                    return Err(format!("client {number} was not asked for {key}, {fence}"));
                }
                let has_to_know = reached.contains(&held);
                if has_to_know && !is_asked {
                    return Err(format!(
                        "client {number} does not know of the ask for {key}"
                    ));
                }
                asking.heard += usize::from(has_to_know);
            }
        }
        Ok(())
    }
}

/// How many holders have heard that they were asked.
fn asks(store: Store) -> usize {
    let seeds = seeds("0..250").step_by(5);
    let worlds = worlds(seeds, store, |world, _| world.ask_holders());
    worlds.map(|it| it.asking.map_or(0, |it| it.heard)).sum()
}

#[test]
fn the_present_holder_hears_that_it_is_asked_and_nobody_who_comes_later() {
    for store in [Store::One, Store::Knowing, Store::Sharded] {
        let heard = asks(store);
        println!("{store:?}: {heard} holders were asked");
        assert!(heard > 0);
    }
}

//! Queues of limited length: a caller is refused if so many wait, and only then, and a waiter stays a waiter.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::seeds::{is_loud, run, seeds};
use super::{CLIENTS, Event, Store, Wire, World};
use crate::backend::queue::protocol::call::Bearer;
use crate::backend::queue::protocol::reply::Standing;
use crate::backend::redis::protocol::call::Call;
use crate::backend::redis::protocol::reply::Reply;
use crate::backend::token::Token;
use crate::types::terms::LeaseId;

/// How often of 256 times the answer to an acquisition is lost with its connection.
const LOST: u8 = 12;

/// What is known of the callers, each by its client and the number that it has there.
pub(super) struct Limits {
    most: usize,
    /// Who has which token.
    tokens: BTreeMap<u128, (usize, LeaseId)>,
    /// Those who have heard that they wait.
    waiters: BTreeSet<(usize, LeaseId)>,
    /// Those who have heard of a grant, perhaps under a token that they had before.
    granted: BTreeSet<(usize, LeaseId)>,
    /// Those whom a server has refused.
    refused: BTreeSet<(usize, LeaseId)>,
    fault: Option<String>,
}

impl Limits {
    /// A server answers an acquisition that found so many waiters.
    fn note(&mut self, who: (usize, LeaseId), waiting: usize, reply: &Reply) {
        let (client, is_waiter) = (who.0, self.waiters.contains(&who));
        let may_have_waited = is_waiter || self.granted.contains(&who);
        match reply {
            Reply::Busy { .. } => {
                self.refused.insert(who);
                if waiting < self.most {
                    self.fault = Some(format!("client {client} is refused, and {waiting} wait"));
                }
            }
            Reply::Waiting { .. } if waiting >= self.most && !may_have_waited => {
                self.fault = Some(format!("client {client} waits behind {waiting} others"));
            }
            _ => {}
        }
    }
}

impl World {
    /// No more than so many wait for a lock.
    fn limit(&mut self, most: u32) {
        for client in &mut self.clients {
            client.exclusive = true;
            client.crowded = true;
            client.limited = Some(most);
        }
        self.limits = Some(Limits {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            tokens: BTreeMap::new(),
            waiters: BTreeSet::new(),
            granted: BTreeSet::new(),
            refused: BTreeSet::new(),
            fault: None,
        });
    }

    /// How many wait for the lock of an acquisition before a server carries it out.
    pub(super) fn count_waiters(&self, server: usize, call: &Call) -> Option<usize> {
        let key = self.limits.as_ref().and(limited(call))?.terms.key.clone();
        Some(self.servers[server].waiting(&key))
    }

    /// A server has carried out an acquisition that found so many waiters.
    pub(super) fn note_limit(
        &mut self,
        wire: Wire,
        call: &Call,
        waiting: Option<usize>,
        reply: &Reply,
    ) {
        let heard = self.hears(wire);
        if let (Some(limits), Some(waiting)) = (&mut self.limits, waiting)
            && let Some(bearer) = limited(call)
        {
            let who = (wire.client, bearer.terms.id);
            limits.tokens.insert(bearer.token.number(), who);
            // Nobody hears what becomes of a late call of an old connection.
            if heard {
                limits.note(who, waiting, reply);
            }
            if self.faulty() && self.rng.u8(..) < LOST {
                let (client, server) = (wire.client, wire.server);
                self.after(Duration::ZERO, Event::Cut { client, server });
            }
        }
    }

    /// A client hears whether its acquisitions wait.
    pub(super) fn note_waiters(&mut self, client: usize, call: &Call, reply: &Reply) {
        let Some(limits) = &mut self.limits else {
            return;
        };
        match (call, reply) {
            (Call::Acquire { bearer, .. }, Reply::Waiting { .. }) => {
                limits.waiters.insert((client, bearer.terms.id));
            }
            (Call::Ask(bearers), Reply::Asked { standings, .. }) => {
                let all = bearers.iter().zip(standings);
                for (bearer, standing) in all {
                    match standing {
                        Standing::Gone => false,
                        Standing::Waiting => limits.waiters.insert((client, bearer.terms.id)),
                        Standing::Granted { .. } => {
                            limits.granted.insert((client, bearer.terms.id))
                        }
                    };
                }
            }
            _ => {}
        }
    }

    /// A client hears that the lock was handed to one of its waiters.
    pub(super) fn note_grant(&mut self, token: Token) {
        if let Some(limits) = &mut self.limits {
            let waiter = limits.tokens.get(&token.number());
            limits.granted.extend(waiter);
        }
    }

    /// Nobody is refused whom no server has refused, and servers refuse whom they may.
    pub(super) fn check_limits(&mut self) -> Result<(), String> {
        let Some(limits) = &mut self.limits else {
            return Ok(());
        };
        for (number, client) in self.clients.iter_mut().enumerate() {
            for id in client.refused.drain(..) {
                if !limits.refused.contains(&(number, id)) {
                    return Err(format!("no server has refused {id:?} of client {number}"));
                }
                if limits.waiters.contains(&(number, id)) {
                    return Err(format!("client {number} is refused, which has waited"));
                }
            }
        }
        limits.fault.take().map_or(Ok(()), Err)
    }
}

/// Who waits, unless fewer than so many do.
fn limited(call: &Call) -> Option<&Bearer> {
    match call {
        Call::Acquire { bearer, .. } if !bearer.terms.wait.is_try() => Some(bearer),
        _ => None,
    }
}

/// How many were refused.
fn refusals(store: Store) -> usize {
    let mut refused = 0;
    for seed in seeds("0..250").step_by(2) {
        let mut world = World::of(seed, store, CLIENTS);
        world.loud = is_loud();
        let most = [1, 2, 4, 8][world.rng.usize(..4)];
        world.limit(most);
        world.after(Duration::from_millis(100), Event::Fault);
        run(&mut world, seed);
        refused += world.limits.map_or(0, |it| it.refused.len());
    }
    refused
}

#[test]
fn a_caller_is_refused_if_as_many_wait_as_may_and_a_waiter_is_not() {
    for store in [Store::One, Store::Knowing, Store::Sharded] {
        let refused = refusals(store);
        println!("{store:?}: {refused} refused");
        assert!(refused > 0);
    }
}

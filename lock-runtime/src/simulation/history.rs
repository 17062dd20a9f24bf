//! What the server of the simulation does, and the polls of bodies, step by step through the rules of the searched
//! model. A lock is left out from the moment at which something happens to it that the model does not have, until it
//! has neither holders nor waiters.

use std::time::Duration;

use spec::queue::history::{Answer, Call, Event, Grant, History, Id, Outcome, Step, Who};
use spec::queue::rules::Rules;
use spec::queue::setting::Company;

use super::chains::{MOST, WINDOW};
use super::client::LONGEST_TTL;
use super::seeds::{is_loud, run, seeds};
use super::server::{CLAIM_TTL, SILENCE};
use super::{CLIENTS, Event as SimulatedEvent, Store, World};
use crate::backend::queue::protocol::call::{self, Bearer};
use crate::backend::queue::protocol::message;
use crate::backend::queue::protocol::reply::Standing;
use crate::backend::redis::protocol::call::Call as Sent;
use crate::backend::redis::protocol::reply::Reply;
use crate::types::key::LockKey;
use crate::types::kind::Kind;

const KEYS: [&str; 2] = ["a", "b"];

/// The model beside a world; none beside a world with other servers than the model's.
pub(super) struct Checked {
    pub(super) history: History,
    keys: [LockKey; 2],
    refused: Option<String>,
}

impl Checked {
    pub(super) fn of(store: Store) -> Option<Self> {
        let rules = Rules {
            ttl: nanos(LONGEST_TTL),
            claim: nanos(CLAIM_TTL),
            // The clients of the model are not asked for their deadlines.
            margin: 0,
            silence: nanos(SILENCE),
            window: WINDOW,
            followers: MOST,
            cooldown: 0,
            ticket: 0,
            call_timeout: 0,
            quarantine: false,
            bug: None,
        };
        (store == Store::One).then(|| Self {
            history: History::new(rules, KEYS.len(), CLIENTS),
            keys: KEYS.map(LockKey::of),
            refused: None,
        })
    }

    fn lock(&self, key: &LockKey) -> usize {
        usize::from(*key != self.keys[0])
    }

    fn step(&mut self, at: u64, lock: usize, event: Event) {
        if self.refused.is_none() {
            let refused = self.history.step(Step { at, lock, event }).err();
            self.refused = refused.map(|it| it.to_string());
        }
    }
}

impl World {
    /// What the model has refused, if it has.
    pub(super) fn check_history(&mut self) -> Result<(), String> {
        let checked = self.checked.as_mut();
        checked.and_then(|it| it.refused.take()).map_or(Ok(()), Err)
    }

    /// How many steps the model has accepted.
    pub(super) fn count_steps(&mut self) {
        if let Some(checked) = &self.checked {
            let counts = checked.history.counts;
            (self.counts.accepted, self.counts.outside) = (counts.accepted, counts.outside);
        }
    }

    /// The server has carried out a call, and published these grants.
    pub(super) fn note_call(
        &mut self,
        client: usize,
        call: &Sent,
        reply: &Reply,
        published: &[(usize, message::Grant)],
    ) {
        let Some(checked) = &mut self.checked else {
            return;
        };
        let Some(key) = subject(call) else {
            return;
        };
        let (at, lock) = (self.now.as_nanos(), checked.lock(&key));
        let event = ran(client, call, reply, published).unwrap_or(Event::Outside);
        checked.step(at, lock, event);
        self.note_free(&key);
    }

    /// Something has happened to a lock that the model does not have.
    pub(super) fn note_outside(&mut self, key: &LockKey) {
        let at = self.now.as_nanos();
        if let Some(checked) = &mut self.checked {
            let lock = checked.lock(key);
            checked.step(at, lock, Event::Outside);
        }
        self.note_free(key);
    }

    fn note_free(&mut self, key: &LockKey) {
        let at = self.now.as_nanos();
        if let Some(checked) = &mut self.checked {
            let lock = checked.lock(key);
            if !checked.history.checks(lock) && self.servers[0].is_free(self.now, key) {
                checked.step(at, lock, Event::Free(self.servers[0].fence));
            }
        }
    }

    /// A client has subscribed to its channel, or the server has noticed that it is gone.
    pub(super) fn note_listens(&mut self, client: usize, listens: bool) {
        let at = self.now.as_nanos();
        if let Some(checked) = &mut self.checked {
            checked.step(at, 0, Event::Listens(client, listens));
        }
    }

    /// The executor of a client polls its bodies.
    pub(super) fn note_polls(&mut self, client: usize) {
        let at = self.now.as_nanos();
        let Some(checked) = &mut self.checked else {
            return;
        };
        for (guard, kind) in self.clients[client].holds() {
            if kind == Kind::Exclusive {
                let (lock, fence) = (checked.lock(guard.key()), guard.fencing_token().get());
                checked.step(at, lock, Event::Polled(client, fence));
            }
        }
    }
}

/// The lock that a call is about.
fn subject(call: &Sent) -> Option<LockKey> {
    match call {
        Sent::Disown(grant) => grant.key(),
        _ => call.key().cloned(),
    }
}

/// What the server has done, if the model has it: shared kinds are left out.
fn ran(
    client: usize,
    call: &Sent,
    reply: &Reply,
    published: &[(usize, message::Grant)],
) -> Option<Event> {
    Some(Event::Ran {
        client,
        calls: vec![called(call, reply, published)?],
        outcome: Outcome::Replies(answers(reply)?),
        grants: published.iter().map(|(_, it)| granted(it)).collect(),
    })
}

fn called(call: &Sent, reply: &Reply, published: &[(usize, message::Grant)]) -> Option<Call> {
    Some(match call {
        Sent::Acquire {
            bearer,
            position,
            company,
        } => {
            let who = who(bearer)?;
            match bearer.terms.ticket() {
                Some(ticket) => Call::Adopt(who, Id(ticket.0)),
                None => Call::Acquire {
                    who,
                    position: *position,
                    company: announced(*company),
                    tries: bearer.terms.wait.is_try() || is_refused(bearer, reply, published),
                    rank: rank(bearer),
                },
            }
        }
        Sent::Ask(bearers) => Call::Ask(bearers.iter().map(who).collect::<Option<_>>()?),
        Sent::Renew { bearer, .. } => Call::Renew(who(bearer)?),
        Sent::Shorten { bearer, left } => Call::Shorten(who(bearer)?, nanos(*left)),
        Sent::Release {
            bearer, cooldown, ..
        } => Call::Release(who(bearer)?, nanos(*cooldown)),
        Sent::Issue {
            bearer,
            ticket,
            time,
        } => Call::Issue(who(bearer)?, Id(ticket.0), nanos(*time)),
        Sent::Leave(bearer) => Call::Leave(who(bearer)?),
        Sent::Disown(grant) => {
            let (token, ttl) = (Id(grant.token.number()), 0);
            Call::Release(Who { token, ttl }, 0)
        }
        _ => return None,
    })
}

/// The server orders tokens by their digits.
fn rank(bearer: &Bearer) -> u64 {
    u64::try_from(bearer.token.number() >> 65).unwrap_or_default()
}

/// Whether too many wait: the acquisition tries once, and does not join the queue.
fn is_refused(bearer: &Bearer, reply: &Reply, published: &[(usize, message::Grant)]) -> bool {
    let handed = published.iter().any(|(_, it)| it.token == bearer.token);
    bearer.terms.max_waiters.is_some()
        && match reply {
            Reply::Busy { .. } => true,
            Reply::Granted { .. } => !handed,
            _ => false,
        }
}

fn who(bearer: &Bearer) -> Option<Who> {
    (bearer.terms.kind == Kind::Exclusive).then(|| Who {
        token: Id(bearer.token.number()),
        ttl: nanos(bearer.terms.ttl),
    })
}

fn announced(company: call::Company) -> Company {
    match company {
        call::Company::Unsaid => Company::Unsaid,
        call::Company::More => Company::More,
        call::Company::Alone => Company::Alone,
    }
}

fn answers(reply: &Reply) -> Option<Vec<Answer>> {
    Some(vec![match reply {
        Reply::Granted { fence } => Answer::Granted(*fence),
        Reply::Waiting { position, .. } => Answer::Waiting(Some(*position)),
        Reply::Busy { .. } | Reply::NoTicket => Answer::Refused,
        Reply::Gone => Answer::Gone,
        Reply::Ours(ours) => Answer::Ours(*ours),
        Reply::Asked { standings, .. } => return Some(standings.iter().map(stands).collect()),
        // Not in the layouts that are simulated.
        Reply::Taken { .. } | Reply::Step(_) => return None,
    }])
}

fn stands(standing: &Standing) -> Answer {
    match standing {
        Standing::Granted { fence } => Answer::Granted(*fence),
        Standing::Waiting => Answer::Waiting(None),
        Standing::Gone => Answer::Gone,
    }
}

fn granted(grant: &message::Grant) -> Grant {
    Grant {
        token: Id(grant.token.number()),
        fence: grant.fence,
        followers: grant.followers.iter().map(|it| Id(it.number())).collect(),
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl World {
    /// One in which nothing happens that the model leaves out.
    fn exclusive(seed: u64) -> Self {
        let mut world = Self::of(seed, Store::One, CLIENTS);
        for client in &mut world.clients {
            client.exclusive = true;
            client.crowded = seed % 2 == 1;
        }
        if seed % 4 > 1 {
            world.transfer();
        }
        world.loud = is_loud();
        world.after(Duration::from_millis(100), SimulatedEvent::Fault);
        world
    }
}

#[test]
fn the_model_accepts_each_step_of_exclusive_locks() {
    let mut accepted = 0;
    for seed in seeds("0..100") {
        let mut world = World::exclusive(seed);
        run(&mut world, seed);
        world.count_steps();
        assert_eq!(world.counts.outside, 0, "seed {seed}");
        accepted += world.counts.accepted;
    }
    println!("the model accepts {accepted} steps of exclusive locks");
    assert!(accepted > 0);
}

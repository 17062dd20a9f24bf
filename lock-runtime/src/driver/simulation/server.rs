//! A model of the server: what the scripts do, in Rust, on the simulation's
//! clock.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use crate::backend::redis::call::{Call, Ticket, Token};
use crate::backend::redis::reply::{Line, Reply, Standing};
use crate::clock::Moment;
use crate::key::LockKey;

const CLAIM_TTL: Duration = Duration::from_secs(3);
const SILENCE: Duration = Duration::from_secs(3);

/// One server and its locks.
#[derive(Default)]
pub(super) struct Server {
    pub(super) fence: u64,
    locks: BTreeMap<LockKey, Lock>,
    /// Which clients a message reaches.
    pub(super) listeners: HashSet<usize>,
    /// Messages to be delivered: client, token, fence, key.
    pub(super) published: Vec<(usize, Token, u64, LockKey)>,
}

#[derive(Default)]
struct Lock {
    owner: Option<(Token, Moment)>,
    queue: BTreeMap<(u64, String), Member>,
    seen: HashMap<usize, Moment>,
}

struct Member {
    token: Token,
    client: usize,
    ttl: Duration,
}

impl Server {
    /// Executes one call of a client's.
    pub(super) fn execute(&mut self, now: Moment, client: usize, call: &Call) -> Reply {
        match call {
            Call::Acquire { ticket, place } => self.acquire(now, client, ticket, *place),
            Call::Ask(tickets) => self.ask(now, client, tickets),
            Call::Renew(ticket) => Reply::Ours(self.extend(now, ticket)),
            Call::Release(ticket) => {
                let key = &ticket.terms.key;
                Reply::Ours(self.release(now, key, ticket.token))
            }
            Call::Leave(ticket) => {
                let key = &ticket.terms.key;
                let lock = self.locks.entry(key.clone()).or_default();
                lock.queue.retain(|_, it| it.token != ticket.token);
                Reply::Ours(self.release(now, key, ticket.token))
            }
            Call::Disown { owner, token } => {
                let key = LockKey::from(&**owner);
                Reply::Ours(self.release(now, &key, *token))
            }
        }
    }

    fn acquire(
        &mut self,
        now: Moment,
        client: usize,
        ticket: &Ticket,
        place: Option<u64>,
    ) -> Reply {
        if self.extend(now, ticket) {
            return Reply::Granted { fence: self.next() };
        }
        let terms = &ticket.terms;
        let lock = self.locks.entry(terms.key.clone()).or_default();
        let mut stands = None;
        if lock.holder(now).is_some() || !lock.queue.is_empty() {
            if !terms.wait.is_try() {
                let place = place.unwrap_or(now.as_nanos() / 1000);
                lock.enqueue(now, client, ticket, place);
                stands = Some(place);
            }
            self.dispatch(now, &terms.key);
        }
        if self.extend(now, ticket) {
            return Reply::Granted { fence: self.fence };
        }
        let line = self.line(now, &terms.key);
        match (line.owner.is_empty(), stands) {
            (false, Some(place)) => Reply::Waiting { place, line },
            (false, None) => Reply::Busy { line },
            (true, Some(_)) => Reply::Gone,
            (true, None) => {
                let fence = self.next();
                let owner = (ticket.token, now.after(terms.ttl));
                self.locks.entry(terms.key.clone()).or_default().owner = Some(owner);
                Reply::Granted { fence }
            }
        }
    }

    fn ask(&mut self, now: Moment, client: usize, tickets: &[Ticket]) -> Reply {
        let key = &tickets[0].terms.key;
        self.locks
            .entry(key.clone())
            .or_default()
            .seen
            .insert(client, now);
        self.dispatch(now, key);
        let mut standings = Vec::new();
        for ticket in tickets {
            let waits = |it: &Member| it.token == ticket.token;
            standings.push(if self.extend(now, ticket) {
                Standing::Granted { fence: self.next() }
            } else if self.locks[key].queue.values().any(waits) {
                Standing::Waiting
            } else {
                Standing::Gone
            });
        }
        let line = self.line(now, key);
        Reply::Asked { line, standings }
    }

    fn extend(&mut self, now: Moment, ticket: &Ticket) -> bool {
        let lock = self.locks.entry(ticket.terms.key.clone()).or_default();
        let ours = lock.holder(now) == Some(ticket.token);
        if ours {
            lock.owner = Some((ticket.token, now.after(ticket.terms.ttl)));
        }
        ours
    }

    fn release(&mut self, now: Moment, key: &LockKey, token: Token) -> bool {
        let lock = self.locks.entry(key.clone()).or_default();
        let ours = lock.holder(now) == Some(token);
        if ours {
            lock.owner = None;
            self.dispatch(now, key);
        }
        ours
    }

    fn dispatch(&mut self, now: Moment, key: &LockKey) {
        let fence = &mut self.fence;
        let Some(lock) = self.locks.get_mut(key) else {
            return;
        };
        if lock.holder(now).is_some() {
            return;
        }
        while let Some((_, member)) = lock.queue.pop_first() {
            let seen = lock.seen.get(&member.client);
            let silent = seen.is_none_or(|seen| now.since(*seen) > SILENCE);
            if silent || !self.listeners.contains(&member.client) {
                continue;
            }
            *fence += 1;
            lock.owner = Some((member.token, now.after(member.ttl.min(CLAIM_TTL))));
            self.published
                .push((member.client, member.token, *fence, key.clone()));
            return;
        }
    }

    fn line(&self, now: Moment, key: &LockKey) -> Line {
        let owner = self.locks[key].owner.filter(|(_, until)| now < *until);
        Line {
            owner: owner.map_or_else(Box::default, |(token, _)| token.to_string().into()),
            left: owner.map(|(_, until)| until.since(now)),
        }
    }

    fn next(&mut self) -> u64 {
        self.fence += 1;
        self.fence
    }
}

impl Lock {
    fn holder(&self, now: Moment) -> Option<Token> {
        let (token, until) = self.owner?;
        (now < until).then_some(token)
    }

    fn enqueue(&mut self, now: Moment, client: usize, ticket: &Ticket, place: u64) {
        let known = self.queue.values().any(|it| it.token == ticket.token);
        if !known {
            let member = Member {
                token: ticket.token,
                client,
                ttl: ticket.terms.ttl,
            };
            self.queue.insert((place, ticket.token.to_string()), member);
        }
        self.seen.insert(client, now);
    }
}

//! Locks that are revoked, or that the server forgets: the holder may work on until it is
//! notified, and nobody enters after that.

use std::time::Duration;

use super::client::LONGEST_TTL;
use super::{Event, Wire, World};
use crate::backend::queue::protocol::message::Message;
use crate::backend::redis::protocol::call::Call;
use crate::backend::redis::protocol::reply::Reply;
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::key::LockKey;

/// A lock that was revoked.
#[derive(Debug)]
pub(super) struct Dispute {
    key: LockKey,
    /// The last number that was given out before.
    fence: u64,
    /// Until when a lease of before may last.
    until: Moment,
    /// Who held it exclusively, if somebody did, and whether it is notified.
    owner: Option<(usize, Token)>,
    notified: bool,
}

impl Dispute {
    fn excuses(&self, now: Moment, client: usize, key: &LockKey, fence: u64) -> bool {
        let notified = self.notified && self.owner.is_some_and(|(owner, _)| owner == client);
        *key == self.key && fence <= self.fence && now < self.until && !notified
    }
}

impl World {
    /// Somebody revokes a lock, or all data are lost.
    pub(super) fn revoke(&mut self) {
        self.forget_tickets();
        let all = self.rng.bool();
        let pick = ["a", "b"][self.rng.usize(..2)];
        let now = self.now;
        let mut messages = Vec::new();
        for key in ["a", "b"].into_iter().filter(|key| all || *key == pick) {
            let key = LockKey::of(key);
            self.say(|| format!("{key} is {}", if all { "forgotten" } else { "forced" }));
            let server = &mut self.servers[0];
            self.disputes.push(Dispute {
                fence: server.fence,
                until: now.after(LONGEST_TTL),
                owner: server.owner(now, &key),
                notified: false,
                key: key.clone(),
            });
            if all {
                server.forget(&key);
            } else {
                messages = server.force(now, &key);
            }
        }
        let published = std::mem::take(&mut self.servers[0].published);
        self.publish(0, published);
        for key in ["a", "b"].into_iter().filter(|key| all || *key == pick) {
            self.note_outside(&LockKey::of(key));
        }
        for token in messages {
            for client in 0..self.clients.len() {
                let generation = self.clients[client].links[0].generation;
                let to = Wire {
                    client,
                    server: 0,
                    generation,
                };
                let delay = self.latency();
                self.after(delay, Event::Push(to, Message::Revoked(token)));
            }
        }
    }

    /// A client hears that its lock is gone.
    pub(super) fn notified(&mut self, client: usize, token: Token) {
        for dispute in &mut self.disputes {
            dispute.notified |= dispute.owner == Some((client, token));
        }
    }

    /// The same, from an answer.
    pub(super) fn notified_by(&mut self, client: usize, call: &Call, reply: &Reply) {
        if let (Call::Renew { bearer, .. }, Reply::Ours(false)) = (call, reply) {
            self.notified(client, bearer.token);
        }
    }

    /// Whether this holder cannot know better.
    pub(super) fn is_excused(&self, client: usize, key: &LockKey, fence: u64) -> bool {
        let mut disputes = self.disputes.iter();
        disputes.any(|it| it.excuses(self.now, client, key, fence))
    }

    /// Whether a lock was revoked or forgotten, and a lease of before may last.
    pub(super) fn is_disputed(&self, key: &LockKey) -> bool {
        let mut disputes = self.disputes.iter();
        disputes.any(|it| it.key == *key && self.now < it.until)
    }

    pub(super) fn plan_to_revoke(&mut self) {
        let pause = Duration::from_millis(self.rng.u64(500..8_000));
        self.after(pause, Event::TakeAway);
    }
}

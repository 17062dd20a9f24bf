//! What the model of the server hands to several of one client at once, and a count of
//! what becomes of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::server::{Lock, Member};
use crate::backend::queue::protocol::call::Company;
use crate::backend::redis::protocol::call::Call;
use crate::backend::token::Token;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::terms::LeaseId;

/// How many follow the first at most.
pub(super) const MOST: usize = 63;
/// By how many microseconds they may have joined after one whom they overtake.
pub(super) const WINDOW: u64 = 1_000;

impl Lock {
    /// Takes those out of the queue that get the lock together with this one.
    pub(super) fn followers(&mut self, head: &Member) -> Vec<Member> {
        if head.company == Company::Alone || !self.crowded.contains(&head.client) {
            return Vec::new();
        }
        let (mut positions, mut latest) = (Vec::new(), u64::MAX);
        for (position, member) in self.queue.iter().take(MOST) {
            if position.0 > latest {
                break;
            } else if member.follows(head) {
                positions.push(position.clone());
            } else {
                latest = latest.min(position.0 + WINDOW);
            }
        }
        let members = positions.iter().filter_map(|it| self.queue.remove(it));
        members.collect()
    }
}

impl Member {
    fn follows(&self, head: &Self) -> bool {
        self.kind == Kind::Exclusive
            && self.company != Company::Alone
            && (self.client, self.kind, self.ttl) == (head.client, head.kind, head.ttl)
    }
}

/// What has become of those who were to be passed a lock.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// By their tokens, with the number that was set aside.
    expected: BTreeMap<(LockKey, u64), (usize, LeaseId)>,
    members: BTreeMap<(usize, LeaseId), (LockKey, u64)>,
    joined: BTreeMap<String, LeaseId>,
    again: BTreeSet<(usize, LeaseId)>,
    pub(super) grants: usize,
    pub(super) chains: usize,
    pub(super) longest: usize,
    pub(super) followers: usize,
    pub(super) handed_over: usize,
    pub(super) started_over: usize,
    pub(super) died: usize,
    /// Steps that the model has accepted, and those of locks that it leaves out.
    pub(super) accepted: usize,
    pub(super) outside: usize,
}

impl Counts {
    /// A client acquires, perhaps once more.
    pub(super) fn asks(&mut self, client: usize, call: &Call) {
        if let Call::Acquire { bearer, .. } = call {
            let id = bearer.terms.id;
            self.joined.insert(bearer.token.to_string(), id);
            if let Some(expected) = self.members.remove(&(client, id)) {
                self.expected.remove(&expected);
                self.again.insert((client, id));
                self.started_over += 1;
            }
        }
    }

    /// The server hands a lock to these, under the numbers behind that of the first.
    pub(super) fn chained(&mut self, client: usize, key: &LockKey, fence: u64, tokens: &[Token]) {
        if tokens.is_empty() {
            return;
        }
        self.chains += 1;
        self.longest = self.longest.max(tokens.len() + 1);
        self.followers += tokens.len();
        for (token, fence) in tokens.iter().zip(fence + 1..) {
            if let Some(&id) = self.joined.get(&token.to_string()) {
                self.expected.insert((key.clone(), fence), (client, id));
                self.members.insert((client, id), (key.clone(), fence));
            }
        }
    }

    /// A client dies, and all who wait there with it.
    pub(super) fn dies(&mut self, client: usize) {
        let before = self.expected.len();
        self.expected.retain(|_, (whose, _)| *whose != client);
        self.members.retain(|(whose, _), _| *whose != client);
        self.died += before - self.expected.len();
    }

    /// A caller gets a lock under this number.
    pub(super) fn entered(&mut self, key: &LockKey, fence: u64) {
        self.grants += 1;
        if let Some(member) = self.expected.remove(&(key.clone(), fence)) {
            self.members.remove(&member);
            self.handed_over += 1;
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.grants += other.grants;
        self.chains += other.chains;
        self.longest = self.longest.max(other.longest);
        self.followers += other.followers;
        self.handed_over += other.handed_over;
        self.started_over += other.started_over;
        self.died += other.died;
        self.accepted += other.accepted;
        self.outside += other.outside;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gone = self.followers - self.handed_over - self.started_over - self.died;
        write!(
            f,
            "{} grants; {} chains, the longest of {}, with {} followers: {} were handed the lock, {} waited again, \
             {gone} gave up, {} died; the model accepts {} steps, {} are outside",
            self.grants,
            self.chains,
            self.longest,
            self.followers,
            self.handed_over,
            self.started_over,
            self.died,
            self.accepted,
            self.outside
        )
    }
}

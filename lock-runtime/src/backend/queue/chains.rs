//! Chains: acquisitions of one connection to which the server has handed a lock at once,
//! and which hand it over among themselves.
//!
//! On the server all of it is the acquisition of the first. Who holds the lock has its
//! token and its name, and renews, asks and is asked under them; the last one releases, and
//! nobody enters after that. A chain lives on one connection: when that breaks, or the lock
//! may be somebody else's, the followers that have not entered queue again in their positions.

mod keys;

use std::collections::VecDeque;

use self::keys::Keys;
use crate::backend::token::Token;
use crate::base::numbers::Numbered;
use crate::types::key::LockKey;
use crate::types::terms::LeaseId;

/// The chains of one connection, each by the token of its first.
#[derive(Debug, Default)]
pub(super) struct Chains {
    by_token: Numbered<Token, Chain>,
    keys: Keys,
}

/// The followers of whoever holds the lock.
#[derive(Debug)]
struct Chain {
    key: LockKey,
    /// Some of them may not want the lock any more.
    followers: VecDeque<LeaseId>,
}

impl Chains {
    pub(super) fn is_empty(&self) -> bool {
        self.by_token.is_empty()
    }

    pub(super) fn has(&self, key: &LockKey) -> bool {
        self.keys.has(key)
    }

    /// The tokens of the chains for these locks.
    pub(super) fn of(&self, concerns: impl Fn(&LockKey) -> bool) -> Vec<Token> {
        let all = self.by_token.iter();
        let concerned = all.filter(|(_, chain)| concerns(&chain.key));
        concerned.map(|(token, _)| *token).collect()
    }

    /// Marks of the keys whose locks are handed over here.
    pub(super) fn marks(&self) -> u64 {
        self.keys.marks()
    }

    pub(super) fn insert(&mut self, token: Token, key: LockKey, followers: VecDeque<LeaseId>) {
        self.remove(token);
        self.keys.add(key.clone());
        self.by_token.insert(token, Chain { key, followers });
    }

    /// Ends a chain, and returns its followers.
    pub(super) fn remove(&mut self, token: Token) -> Vec<LeaseId> {
        let Some(chain) = self.by_token.remove(&token) else {
            return Vec::new();
        };
        self.keys.remove(&chain.key);
        chain.followers.into()
    }

    /// Takes out the next that still wants the lock; a chain without followers ends.
    pub(super) fn next(
        &mut self,
        token: Token,
        wants: impl Fn(LeaseId) -> bool,
    ) -> Option<LeaseId> {
        let followers = &mut self.by_token.get_mut(&token)?.followers;
        while let Some(id) = followers.pop_front() {
            if wants(id) {
                return Some(id);
            }
        }
        self.remove(token);
        None
    }

    /// Whether others are to follow.
    pub(super) fn goes_on(&self, token: Token) -> bool {
        self.followers(token).next().is_some()
    }

    pub(super) fn followers(&self, token: Token) -> impl Iterator<Item = &LeaseId> {
        let chain = self.by_token.get(&token);
        chain.into_iter().flat_map(|chain| &chain.followers)
    }
}

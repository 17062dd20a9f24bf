//! What the server has said and its replicas have not confirmed yet: until then, a failover
//! might undo it.

use std::time::Duration;

use super::protocol::call::Bearer;
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::key::LockKey;

/// The grants and renewals that replicas have to confirm.
#[derive(Debug, Default)]
pub(super) struct Replicas {
    /// Since the replicas were last asked.
    said: Vec<Unconfirmed>,
    /// What they are being asked about.
    asked: Vec<Unconfirmed>,
}

/// The lock is ours for `ttl` from `since`.
#[derive(Debug)]
pub(super) struct Unconfirmed {
    pub(super) bearer: Bearer,
    pub(super) since: Moment,
    pub(super) ttl: Duration,
}

impl Replicas {
    /// They are to confirm a grant or a renewal.
    pub(super) fn add(&mut self, bearer: Bearer, since: Moment, ttl: Duration) {
        self.said.push(Unconfirmed { bearer, since, ttl });
    }

    /// Whether something said under this token has yet to be confirmed.
    pub(super) fn has(&self, token: Token) -> bool {
        let mut all = self.said.iter().chain(&self.asked);
        all.any(|it| it.bearer.token == token)
    }

    /// How long they have to confirm everything that has been said so far, if they are to be
    /// asked now, and a lock that it was about.
    pub(super) fn ask(&mut self) -> Option<(Duration, LockKey)> {
        if !self.asked.is_empty() {
            return None;
        }
        self.asked = std::mem::take(&mut self.said);
        let first = self.asked.first()?.bearer.terms.key.clone();
        let timeouts = self.asked.iter().map(|it| it.bearer.terms.call_timeout());
        // The caller is to hear why before its call times out.
        timeouts.min().map(|timeout| (timeout / 2, first))
    }

    /// What they were asked about, once they have answered.
    pub(super) fn answered(&mut self) -> Vec<Unconfirmed> {
        std::mem::take(&mut self.asked)
    }

    /// Everything, in order: nobody will confirm it.
    pub(super) fn give_up(&mut self) -> Vec<Unconfirmed> {
        let mut all = self.answered();
        all.append(&mut self.said);
        all
    }
}

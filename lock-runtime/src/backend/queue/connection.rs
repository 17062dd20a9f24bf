//! What happens to a connection, and what that means for its claims.

use std::time::{Duration, SystemTime};

use super::Queue;
use super::claim::{Claim, Stage};
use super::protocol::step::Step;
use super::protocol::trouble::Trouble;
use super::quarantine::{Part, Quarantines};
use crate::base::clock::Moment;
use crate::types::key::LockKey;

impl<S: Step> Queue<S> {
    /// The connection is open and subscribed: unsure claims ask at once.
    pub(crate) fn connected(&mut self, now: Moment) {
        self.down = None;
        self.claims.tokens.forget();
        self.resume(now, |_| true);
        self.tell_of_quarantine();
    }

    /// The connection that is open now has another session than the last one.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn session_changed(&mut self) {
        for id in self.claims.ids(Claim::is_in_queue) {
            if let Some(claim) = self.claims.get_mut(&id) {
                claim.is_stray = true;
            }
        }
    }

    /// The server of these locks can be reached again, or another one has them now.
    pub(crate) fn resume(&mut self, now: Moment, concerns: impl Fn(&LockKey) -> bool) {
        self.waiters.ask_all(now, &concerns);
        for id in self.claims.ids(|claim| concerns(&claim.bearer.terms.key)) {
            if self.claims.get(&id).is_some_and(Claim::is_late) {
                self.renew(now, id);
            }
            self.retry(now, id);
        }
    }

    /// The connection is gone, or could not be made. The calls in flight have
    /// been [`replied`](Self::replied) before.
    pub(crate) fn disconnected(&mut self, trouble: Trouble) {
        self.replicas_gone(&trouble);
        self.interrupt(&trouble, |_| true);
        self.listeners.end(&trouble);
        self.down = Some(trouble);
    }

    /// The server of these locks cannot be reached.
    pub(crate) fn interrupt(&mut self, trouble: &Trouble, concerns: impl Fn(&LockKey) -> bool) {
        // Nobody enters a lock of which the server may not have heard for long. They are sent
        // when it can be reached again.
        for chain in self.chains.of(&concerns) {
            if let Some(at) = self.claim_of(chain).map(|claim| claim.since) {
                self.break_up(at, chain);
            }
        }
        for id in self.claims.ids(|claim| concerns(&claim.bearer.terms.key)) {
            let Some(claim) = self.claims.get_mut(&id) else {
                continue;
            };
            // Others may be granted the lock before it is found again. What the server does not
            // know yet it cannot tell either.
            if !claim.unknown {
                claim.fence = None;
            }
            claim.downgrade_again();
            if claim.stage == Stage::Waiting {
                claim.stage = Stage::Unsure;
            }
            if matches!(claim.stage, Stage::Unsent | Stage::Unsure) {
                self.trouble(id, trouble);
            }
        }
    }

    /// Another server has these locks now, to which the last writes of the one before may not have
    /// come.
    pub(crate) fn replaced(&mut self, concerns: impl Fn(&LockKey) -> bool) {
        for id in self.claims.ids(|claim| concerns(&claim.bearer.terms.key)) {
            if let Some(claim) = self.claims.get_mut(&id) {
                claim.downgrade_again();
            }
        }
    }

    /// The connection that is open now is to a server that grants nothing for this time.
    pub(crate) fn quarantined(&mut self, now: Moment, left: Option<Duration>) {
        self.quarantines = Quarantines::of_server(now, left);
    }

    /// The server of this part grants nothing until then, even if the part moves to another
    /// server.
    pub(crate) fn close(&mut self, now: Moment, part: Part, ends: Moment) {
        if self.quarantines.close(now, part, ends) {
            // What is held ends without being handed over.
            for chain in self.chains.of(|key| self.quarantines.of(key).is_some()) {
                self.break_up(now, chain);
            }
            self.tell_of_quarantine();
        }
    }

    /// Why this lock cannot be acquired.
    pub(super) fn obstacle(&self, key: &LockKey) -> Option<&Trouble> {
        let quarantine = || self.quarantines.of(key).map(|it| &it.trouble);
        self.down.as_ref().or_else(quarantine)
    }

    /// Tells those who want a lock that they have to wait.
    pub(super) fn tell_of_quarantine(&mut self) {
        let wants = |claim: &Claim| matches!(claim.stage, Stage::Unsent | Stage::Unsure);
        for id in self.claims.ids(wants) {
            let claim = self.claims.get(&id);
            let quarantine = claim.and_then(|it| self.quarantines.of(&it.bearer.terms.key));
            if let Some(trouble) = quarantine.map(|it| it.trouble.clone()) {
                self.trouble(id, &trouble);
            }
        }
    }

    /// Until when nothing is granted, by the clock of this machine.
    pub(crate) fn quarantined_until(&self) -> Option<SystemTime> {
        self.quarantines.last().map(|it| it.until)
    }

    /// Grants again once its time has come.
    pub(super) fn end_quarantine(&mut self, now: Moment) {
        if self.quarantines.has_ended(now) {
            self.waiters.ask_all(now, |_| true);
            for id in self.claims.ids(Claim::is_unsent) {
                self.retry(now, id);
            }
        }
    }
}

//! What the news of sessions and watches mean for claims.

use std::time::Duration;

use super::claim::Stage;
use super::lease::SessionEvent;
use super::{PAUSE, Queue, Seen};
use crate::backend::Outcome;
use crate::backend::etcd::protocol::trouble::Trouble;
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::terms::LeaseId;

impl Queue {
    /// A watch has seen something.
    pub(crate) fn seen(&mut self, now: Moment, watch: u64, seen: &Seen) {
        let Some(id) = self.watches.claim(watch) else {
            return;
        };
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        match (seen, claim.stage) {
            (Seen::Changed, Stage::Held { .. }) => self.lose(id),
            (Seen::Changed, Stage::Waiting) => {
                claim.stage = Stage::Looking;
                self.unwatch(id);
                self.go_on(now, id);
            }
            (Seen::Changed, _) => {}
            (Seen::Ended, _) => {
                // It looks for itself, and watches from there.
                claim.unwatched = true;
                self.unwatch(id);
                self.claims.schedule(now.after(PAUSE), id);
            }
        }
    }

    /// Acts on what a session has learnt.
    pub(super) fn act_on(&mut self, now: Moment, ttl: Duration, event: SessionEvent) {
        match event {
            SessionEvent::Nothing => {}
            SessionEvent::Ready => self.each_user(ttl, |this, id| this.is_ready(now, id)),
            SessionEvent::Confirmed => self.are_confirmed(now, ttl),
            SessionEvent::Lost => {
                if let Some(session) = self.sessions.get_mut(&ttl) {
                    session.renewing.clear();
                }
                self.each_user(ttl, |this, id| this.is_lost(now, id));
            }
            SessionEvent::Failed(cause) => self.are_unconfirmed(ttl, &cause),
        }
    }

    /// All claims of a session, in the order in which they were asked for.
    fn each_user(&mut self, ttl: Duration, does: impl Fn(&mut Self, LeaseId)) {
        for id in self.claims.ids(|it| it.ttl() == ttl) {
            does(self, id);
        }
    }

    /// Entries can be made on the lease of a claim, and late calls make none.
    fn is_ready(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let lock = claim.terms.key.clone();
        match claim.stage {
            Stage::Unsent => self.pump(now, &lock),
            Stage::Unsure if claim.leaving.is_some() => self.leave(now, id),
            Stage::Unsure => {
                claim.stage = Stage::Unsent;
                self.key_orders.join_first(&lock, id);
                self.pump(now, &lock);
            }
            _ => {}
        }
    }

    fn are_confirmed(&mut self, now: Moment, ttl: Duration) {
        let Some(session) = self.sessions.get_mut(&ttl) else {
            return;
        };
        let renewed = std::mem::take(&mut session.renewing);
        if let Some((since, ttl)) = session.confirmed() {
            for id in renewed {
                self.claims.report(Outcome::Renewed { id, since, ttl });
            }
        }
        self.each_user(ttl, |this, id| {
            if this.is_in(id, Stage::Confirming) {
                this.enter(now, id);
            }
        });
    }

    fn are_unconfirmed(&mut self, ttl: Duration, cause: &Cause) {
        let session = self.sessions.get_mut(&ttl);
        let renewing = session.map(|session| std::mem::take(&mut session.renewing));
        for id in renewing.unwrap_or_default() {
            let cause = cause.clone();
            self.claims.report(Outcome::RenewFailed { id, cause });
        }
        let trouble = Trouble::NotNow(cause.clone());
        self.each_user(ttl, |this, id| {
            if this.is_in(id, Stage::Confirming) || this.is_in(id, Stage::Unsent) {
                this.trouble(id, &trouble);
            }
        });
    }

    /// The lease of a claim has ended, and its entry with it.
    fn is_lost(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        match claim.stage {
            Stage::Held { .. } => self.lose(id),
            Stage::Unsure if claim.leaving.is_some() => self.released(id, Ok(false)),
            Stage::Waiting | Stage::Looking | Stage::Confirming | Stage::Unsure => {
                self.start_over(now, id);
            }
            Stage::Unsent => self.go_on(now, id),
            _ => {}
        }
    }
}

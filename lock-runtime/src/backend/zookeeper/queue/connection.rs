//! Adapts acquisitions when connections and sessions begin and end.

use std::sync::Arc;

use super::Queue;
use super::claim::{Claim, Downgrade, Stage};
use super::writes::{self, Writes};
use crate::backend::Outcome;
use crate::backend::zookeeper::call::{Recipient, Step, cause};
use crate::backend::zookeeper::protocol::op::Op;
use crate::backend::zookeeper::protocol::reply::Trouble;
use crate::backend::zookeeper::session::Session;
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::terms::LeaseId;

impl Queue {
    /// A server answers for a session: the one that there was, or another one. `seen`
    /// is the last change that is known.
    pub(in super::super) fn connected(&mut self, now: Moment, session: Session, seen: i64) {
        match &mut self.session {
            Some(known) if known.identity.id == session.identity.id => {
                known.resume(&session);
                self.resume(seen);
            }
            _ => {
                self.session_over(now);
                self.start(session);
            }
        }
    }

    fn start(&mut self, session: Session) {
        self.requests.create_session(&session);
        self.session = Some(session);
        self.requests.discard_leftovers();
        for id in self.claims.ids(|_| true) {
            self.begin(id);
        }
    }

    /// Asks again for everything whose answer was lost.
    fn resume(&mut self, seen: i64) {
        for op in self.watches.renew(seen) {
            self.requests.send(op, Recipient::Watches);
        }
        self.requests.discard_leftovers();
        for id in self.claims.ids(|_| true) {
            self.resume_claim(id);
            self.announce(id);
            self.renew_if_asked(id);
        }
    }

    fn resume_claim(&mut self, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let unanswered = std::mem::take(&mut claim.unanswered);
        match claim.stage {
            Stage::InQueue if !unanswered => {
                let holder = claim.holder.clone();
                self.claims.report(Outcome::Waiting { id, holder });
            }
            _ if !unanswered => {}
            Stage::Fresh | Stage::Trying | Stage::Refused | Stage::Seeking | Stage::Adopting => {
                self.begin(id);
            }
            Stage::Creating | Stage::Finding => self.find(id),
            Stage::InQueue => self.look(id, false),
            Stage::Held if claim.downgrade == Some(Downgrade::Asked) => self.go_on_downgrading(id),
            Stage::Held => self.look_after(id),
            Stage::Leaving { held, .. } => {
                let closing = claim.closing;
                self.leave(id, closing);
                if let Some(claim) = self.claims.get_mut(&id) {
                    claim.stage = Stage::Leaving { held, again: true };
                }
            }
        }
    }

    /// Looks for a node whose creation was not confirmed, once the server knows all that
    /// the one before it knew.
    fn find(&mut self, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        claim.stage = Stage::Finding;
        let path = self.requests.paths.lock(&claim.terms.key);
        let to = Recipient::Claim(self.claims.next_turn(id), Step::Sync);
        self.requests.send(Op::Sync { path }, to);
    }

    /// The server will not report what was watched.
    pub(super) fn watch_again(&mut self) {
        for id in self.claims.ids(|_| true) {
            match self.claims.get(&id).map(|it| it.stage) {
                Some(Stage::InQueue) => self.look(id, false),
                Some(Stage::Held) => self.look_after(id),
                _ => {}
            }
        }
    }

    /// The node of the session cannot be made, without which no lease would be confirmed: nobody waits for that.
    pub(in super::super) fn refused(&mut self, cause: &Cause) {
        self.refused = Some(Arc::clone(cause));
        for id in self.claims.ids(Claim::is_acquiring) {
            self.give_up(id, cause);
        }
    }

    /// The node of the session was not made, since the one above it was gone.
    pub(in super::super) fn mark_again(&mut self) {
        if let Some(session) = &self.session {
            self.requests.create_session(session);
        }
    }

    /// The node of the session is there.
    pub(in super::super) fn accepted(&mut self) {
        self.refused = None;
    }

    /// Fails an acquisition, whose node may be there or come to be.
    pub(super) fn give_up(&mut self, id: LeaseId, cause: &Cause) {
        let cause = Arc::clone(cause);
        self.claims.report(Outcome::Failed { id, cause });
        self.abandon(id);
    }

    fn renew_if_asked(&mut self, id: LeaseId) {
        if self.claims.get(&id).is_some_and(|it| it.renewing) {
            self.renew(id);
        }
    }

    /// The answer to a call will not come.
    pub(in super::super) fn unanswered(&mut self, to: Recipient) {
        match to {
            Recipient::Claim(turn, _) => {
                if let Some(claim) = self.claims.in_turn(turn) {
                    claim.unanswered = true;
                }
            }
            Recipient::Alone(turn, step) => {
                self.writes.ended(writes::ALONE);
                self.unanswered(Recipient::Claim(turn, step));
            }
            Recipient::Batch(members) => {
                self.writes.ended(writes::TOGETHER);
                for (turn, step) in members {
                    self.unanswered(Recipient::Claim(turn, step));
                }
            }
            Recipient::Leftover(path) => self.requests.not_discarded(path),
            _ => {}
        }
    }

    /// The server cannot be asked, and `soon` may be again.
    pub(in super::super) fn disconnected(&mut self, cause: &Cause, soon: bool) {
        for call in self.requests.take() {
            self.unanswered(call.to);
        }
        for id in self.claims.ids(Claim::is_acquiring) {
            let cause = Arc::clone(cause);
            self.claims.report(Outcome::Trouble { id, cause, soon });
        }
        // The next heartbeat that is confirmed is their answer still.
        for id in self.claims.ids(|it| it.renewing) {
            let cause = Arc::clone(cause);
            self.claims.report(Outcome::RenewFailed { id, cause });
        }
    }

    /// Whether the session has not been confirmed for so long that it may have ended.
    pub(in super::super) fn is_session_over(&self, now: Moment) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|it| now >= it.deadline())
    }

    /// The session has ended, or may have: all its nodes are gone, or will be.
    pub(in super::super) fn session_over(&mut self, now: Moment) {
        self.session = None;
        self.refused = None;
        self.watches.clear();
        self.requests.end_session();
        self.writes = Writes::default();
        self.claims.tokens.forget();
        for id in self.claims.ids(|_| true) {
            let Some(claim) = self.claims.get(&id) else {
                continue;
            };
            if claim.stage == Stage::Held && !claim.unwanted {
                self.lost(id);
            } else if let Stage::Leaving { .. } = claim.stage {
                // It was to be deleted, and may have been, and what keeps the lock closed may be there.
                if let (Some(node), Some(closing)) = (claim.node, claim.closing) {
                    self.will_open(now, id, node, closing);
                }
                self.may_be_issued(id);
                self.released(id, Err(cause(Trouble::SessionOver)));
            } else if claim.unwanted {
                self.released(id, Ok(false));
            } else {
                self.start_over(id);
            }
        }
    }
}

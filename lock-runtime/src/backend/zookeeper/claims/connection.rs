//! What becomes of acquisitions when connections and sessions begin and end.

use std::sync::Arc;

use super::Claims;
use super::claim::Stage;
use crate::backend::Outcome;
use crate::backend::zookeeper::call::{Call, To, cause};
use crate::backend::zookeeper::protocol::op::{Mode, Op};
use crate::backend::zookeeper::protocol::reply::Refusal;
use crate::backend::zookeeper::session::Session;
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::terms::LeaseId;

impl Claims {
    /// A server answers for a session: the one that there was, or another one. `seen`
    /// is the last change that is known.
    pub(in super::super) fn connected(&mut self, session: Session, seen: i64) {
        match &mut self.session {
            Some(known) if known.identity.id == session.identity.id => {
                known.resume(&session);
                self.resume(seen);
            }
            _ => {
                self.session_over();
                self.start(session);
            }
        }
    }

    fn start(&mut self, session: Session) {
        self.session = Some(session);
        self.mark_session();
        for id in self.ids() {
            self.begin(id);
        }
    }

    /// Creates the node to which heartbeats are written.
    pub(super) fn mark_session(&mut self) {
        let Some(session) = &self.session else {
            return;
        };
        let op = Op::Create {
            path: self.paths.session(&session.identity),
            data: Vec::new(),
            mode: Mode::Ephemeral,
        };
        let above = self.paths.above_session().into_iter();
        self.calls.extend(above.map(|op| Call::new(op, To::Nobody)));
        self.calls.push(Call::new(op, To::Session));
    }

    /// Asks again for everything whose answer was lost.
    fn resume(&mut self, seen: i64) {
        let watches = self.watches.renew(seen).into_iter();
        self.calls
            .extend(watches.map(|op| Call::new(op, To::Nobody)));
        self.discard_leftovers();
        for id in self.ids() {
            self.resume_claim(id);
            self.announce(id);
            self.renew_if_asked(id);
        }
    }

    fn resume_claim(&mut self, id: LeaseId) {
        let Some(claim) = self.table.get_mut(&id) else {
            return;
        };
        let unanswered = std::mem::take(&mut claim.unanswered);
        match claim.stage {
            Stage::InLine if !unanswered => {
                let holder = claim.holder.clone();
                self.outcomes.push_back(Outcome::Waiting { id, holder });
            }
            _ if !unanswered => {}
            Stage::Fresh | Stage::Trying | Stage::Refused => self.begin(id),
            Stage::Creating | Stage::Finding => self.find(id),
            Stage::InLine => self.look(id, false),
            Stage::Held => self.look_after(id),
            Stage::Leaving { held, .. } => {
                let rest = claim.rest;
                self.leave(id, rest);
                if let Some(claim) = self.table.get_mut(&id) {
                    claim.stage = Stage::Leaving { held, again: true };
                }
            }
        }
    }

    /// Looks for a node whose creation was not confirmed, once the server knows all that
    /// the one before it knew.
    fn find(&mut self, id: LeaseId) {
        let Some(claim) = self.table.get_mut(&id) else {
            return;
        };
        claim.stage = Stage::Finding;
        let path = self.paths.lock(&claim.terms.key);
        self.calls.push(Call::new(Op::Sync { path }, To::Nobody));
        self.look(id, false);
    }

    fn renew_if_asked(&mut self, id: LeaseId) {
        if self.table.get(&id).is_some_and(|it| it.renewing) {
            self.renew(id);
        }
    }

    /// The answer to a call will not come.
    pub(in super::super) fn unanswered(&mut self, to: To) {
        match to {
            To::Claim(id, turn, _) => {
                if let Some(claim) = self.table.get_mut(&id)
                    && claim.turn == turn
                {
                    claim.unanswered = true;
                }
            }
            To::Leftover(path) => self.leftovers.push(path),
            _ => {}
        }
    }

    /// The server cannot be asked, and `soon` may be again.
    pub(in super::super) fn disconnected(&mut self, cause: &Cause, soon: bool) {
        for call in std::mem::take(&mut self.calls) {
            self.unanswered(call.to);
        }
        for id in self.ids() {
            let (claim, cause) = (&self.table[&id], Arc::clone(cause));
            if claim.is_acquiring() {
                let trouble = Outcome::Trouble { id, cause, soon };
                self.outcomes.push_back(trouble);
            } else if claim.renewing {
                // The next heartbeat that is confirmed is its answer still.
                self.outcomes.push_back(Outcome::RenewFailed { id, cause });
            }
        }
    }

    /// Whether the session has not been confirmed for so long that it may have ended.
    pub(in super::super) fn is_session_over(&self, now: Moment) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|it| now >= it.deadline())
    }

    /// The session has ended, or may have: all its nodes are gone, or will be.
    pub(in super::super) fn session_over(&mut self) {
        self.session = None;
        self.watches.clear();
        self.agenda.clear();
        self.leftovers.clear();
        self.calls.clear();
        self.tokens.forget();
        for id in self.ids() {
            let claim = &self.table[&id];
            if claim.stage == Stage::Held {
                self.table.remove(&id);
                self.outcomes.push_back(Outcome::NotHeld { id });
            } else if let Stage::Leaving { .. } = claim.stage {
                // It was to be deleted, and may have been.
                self.end_release(id, Err(cause(Refusal::SessionOver)));
            } else if claim.unwanted {
                self.end_release(id, Ok(false));
            } else if let Some(token) = self.fresh_token(id)
                && let Some(claim) = self.table.get_mut(&id)
            {
                claim.start_over(token);
            }
        }
    }

    /// In the order in which they came.
    fn ids(&self) -> Vec<LeaseId> {
        let mut ids: Vec<_> = self.table.keys().copied().collect();
        ids.sort_unstable();
        ids
    }
}

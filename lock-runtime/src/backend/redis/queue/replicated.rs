//! Grants and renewals that count once replicas have them: until then, a failover might
//! undo them.

use std::time::Duration;

use super::unconfirmed::{Said, Unconfirmed};
use super::{PAUSE, Queue, Stage};
use crate::backend::Outcome;
use crate::backend::redis::protocol::call::Ticket;
use crate::backend::redis::protocol::reply::Trouble;
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::deadline::deadline;
use crate::types::key::LockKey;

impl Queue {
    /// Replicas are to confirm a grant or a renewal.
    pub(super) fn await_replicas(&mut self, ticket: Ticket, since: Moment, ttl: Duration) {
        if let Some(all) = &mut self.replicated {
            all.said.push(Said { ticket, since, ttl });
        }
    }

    /// Whether a renewal under this token is on its way, or has yet to be confirmed: it may
    /// count later on, from when it was sent.
    pub(super) fn is_being_renewed(&self, renewals: u32, token: Token) -> bool {
        let unconfirmed = |all: &Unconfirmed| {
            let mut said = all.said.iter().chain(&all.asked);
            said.any(|said| said.ticket.token == token)
        };
        renewals > 0 || self.replicated.as_ref().is_some_and(unconfirmed)
    }

    /// How long the replicas have to confirm everything that has been said so far, if they
    /// are to be asked now, and a lock that it was about.
    pub(crate) fn ask_replicas(&mut self) -> Option<(Duration, LockKey)> {
        let all = self.replicated.as_mut()?;
        if !all.asked.is_empty() {
            return None;
        }
        all.asked = std::mem::take(&mut all.said);
        let first = all.asked.first()?.ticket.terms.key.clone();
        let timeouts = all.asked.iter().map(|it| it.ticket.terms.call_timeout());
        // The caller is to hear why before its call times out.
        timeouts.min().map(|timeout| (timeout / 2, first))
    }

    /// The replicas have what they were asked about, or too few of them do.
    pub(crate) fn replicas_answered(&mut self, now: Moment, answer: &Result<(), Trouble>) {
        let all = self.replicated.as_mut();
        let asked = all.map(|all| std::mem::take(&mut all.asked));
        for said in asked.into_iter().flatten() {
            match answer {
                Ok(()) => self.confirmed(now, said),
                Err(trouble) => self.refused(now, &said, trouble),
            }
        }
    }

    /// The connection has ended: nobody will confirm anything.
    pub(super) fn replicas_gone(&mut self, trouble: &Trouble) {
        let all = self.replicated.as_mut().map(std::mem::take);
        for said in all
            .into_iter()
            .flat_map(|it| it.asked.into_iter().chain(it.said))
        {
            self.refused(said.since, &said, trouble);
        }
    }

    fn confirmed(&mut self, now: Moment, said: Said) {
        let Said { ticket, since, ttl } = said;
        let Some(claim) = self.claim(&ticket) else {
            return;
        };
        let id = claim.ticket.terms.id;
        match claim.stage {
            Stage::Held { .. } => self.renewed(id, since, ttl),
            Stage::Replicating { fence } if now < deadline(since, ttl) => {
                self.hold(now, id, fence, since, ttl);
            }
            Stage::Replicating { .. } => self.unsure(&ticket, now),
            _ => {}
        }
    }

    fn refused(&mut self, now: Moment, said: &Said, trouble: &Trouble) {
        let Some(claim) = self.claim(&said.ticket) else {
            return;
        };
        let id = claim.ticket.terms.id;
        match claim.stage {
            Stage::Held { .. } => {
                let cause = trouble.cause();
                self.claims.report(Outcome::RenewFailed { id, cause });
            }
            Stage::Replicating { .. } => {
                self.unsure(&said.ticket, now.after(PAUSE));
                self.trouble(id, trouble);
            }
            _ => {}
        }
    }

    /// Only the server knows its position; it is asked `at` that moment.
    pub(super) fn unsure(&mut self, ticket: &Ticket, at: Moment) {
        if let Some(claim) = self.claim(ticket) {
            claim.stage = Stage::Unsure;
            let ticket = claim.ticket.clone();
            self.waiters.join_later(&ticket, at);
        }
    }
}

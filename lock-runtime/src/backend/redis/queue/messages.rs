//! What each pushed message means for the claims of a connection.

use super::{CLAIM_TTL, Queue, Stage};
use crate::backend::Outcome;
use crate::backend::redis::protocol::call::Call;
use crate::backend::redis::protocol::message::{Grant, Message};
use crate::backend::token::Token;
use crate::base::clock::Moment;

impl Queue {
    /// Takes in a pushed message. Messages and replies may arrive in any order.
    pub(crate) fn heard(&mut self, now: Moment, message: Message) {
        match message {
            Message::Granted(grant) => self.pushed(now, grant),
            Message::Revoked(token) => self.revoked(now, token),
            Message::Asked { channel, tokens } => {
                for token in tokens {
                    self.report(now, &channel, token);
                }
            }
            Message::Told { token, fence, held } => self.inspections.told(token, fence, held),
        }
    }

    fn pushed(&mut self, now: Moment, grant: Grant) {
        let is_closed = |key| self.quarantines.of(&key).is_some();
        if !self.quarantines.is_empty() && grant.key().is_some_and(is_closed) {
            // By somebody who does not know better. Asking finds it later.
            return;
        }
        let Some(&id) = self.ids.get(&grant.token) else {
            // The acquisition was given up while its connection was gone.
            self.send(now, Call::Disown(grant));
            return;
        };
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        claim.crowded = true;
        if matches!(
            claim.stage,
            Stage::Acquiring | Stage::Waiting | Stage::Unsure
        ) {
            let ttl = claim.ticket.terms.ttl.min(CLAIM_TTL);
            let since = claim.since;
            if self.pushes_are_hints {
                self.confirm(now, id, grant.fence);
            } else {
                self.enter(now, id, grant.fence, since, ttl);
            }
        }
    }

    fn revoked(&mut self, now: Moment, token: Token) {
        let Some(&id) = self.ids.get(&token) else {
            return;
        };
        match self.claims.get(&id).map(|claim| claim.stage) {
            Some(Stage::Held { .. }) => self.outcomes.push_back(Outcome::NotHeld { id }),
            // It was granted, and we have not heard of it yet.
            Some(
                Stage::Acquiring
                | Stage::Waiting
                | Stage::Unsure
                | Stage::Confirming { .. }
                | Stage::Replicating { .. },
            ) => {
                self.start_over(now, id);
                self.retry(now, id);
            }
            _ => {}
        }
    }

    /// Tells another connection about a lock that is held here.
    fn report(&mut self, now: Moment, channel: &str, token: Token) {
        let id = self.ids.get(&token);
        let claim = id.and_then(|id| self.claims.get(id));
        if let Some(Stage::Held { fence, granted }) = claim.map(|claim| claim.stage) {
            let (channel, held) = (channel.into(), now.since(granted));
            let report = Call::Report {
                channel,
                token,
                fence,
                held,
            };
            self.send(now, report);
        }
    }
}

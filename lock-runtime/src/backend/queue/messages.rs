//! What each pushed message means for the claims of a connection.

use super::claim::{Claim, Stage};
use super::protocol::call::{Bearer, Call};
use super::protocol::message::{Grant, Message};
use super::protocol::step::Step;
use super::reports::Report;
use super::{CLAIM_TTL, Queue};
use crate::backend::Outcome;
use crate::backend::token::Token;
use crate::base::clock::Moment;

impl<S: Step> Queue<S> {
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
            Message::Wanted { channel, tokens } => {
                for token in tokens {
                    self.wanted(token);
                    self.report(now, &channel, token);
                }
            }
            Message::Told {
                token,
                fence,
                held,
                followers,
                nested,
            } => self.listeners.reported(&Report {
                token,
                fence,
                held,
                followers,
                nested,
            }),
        }
    }

    fn pushed(&mut self, now: Moment, mut grant: Grant) {
        let is_closed = |key| self.quarantines.of(&key).is_some();
        // A server with plain names is closed as a whole.
        if !self.quarantines.is_empty() && grant.key().is_none_or(is_closed) {
            // By somebody who does not know better. Asking finds it later.
            return;
        }
        let followers = std::mem::take(&mut grant.followers);
        let id = self.ids.get(&grant.token).copied();
        let claim = id.and_then(|id| self.claims.get_mut(&id));
        let (Some(id), Some(claim)) = (id, claim) else {
            // The acquisition was given up while its connection was gone.
            self.send(now, Call::Disown(grant));
            return self.queue_again(now, &followers);
        };
        claim.crowded = true;
        claim.waited = true;
        match claim.stage {
            Stage::Acquiring | Stage::Waiting | Stage::Unsure => {
                let ttl = claim.bearer.terms.ttl.min(CLAIM_TTL);
                let since = claim.since;
                let joined = self.form_chain(id, grant.fence, &followers);
                if self.pushes_are_hints {
                    self.confirm(now, id, grant.fence);
                } else {
                    self.enter(
                        now,
                        id,
                        grant.fence,
                        joined.map_or(since, |it| it.max(since)),
                        ttl,
                    );
                }
            }
            // An answer came before the message.
            Stage::Held { fence, .. }
            | Stage::Confirming { fence }
            | Stage::Replicating { fence }
                if fence == grant.fence && claim.downgrade.is_none() =>
            {
                self.form_chain(id, fence, &followers);
            }
            // It is being released, is a reader by now, or has a larger number than they would have.
            _ => {
                // It waited for longer than its forbidden leave was to be repeated.
                let ends = now.after(claim.bearer.terms.ttl.min(CLAIM_TTL));
                claim.forbidden = claim.forbidden.map(|until| until.max(ends));
                self.queue_again(now, &followers);
            }
        }
    }

    fn revoked(&mut self, now: Moment, token: Token) {
        let Some(&id) = self.ids.get(&token) else {
            return;
        };
        match self.claims.get(&id).map(|claim| claim.stage) {
            Some(Stage::Held { .. }) => self.lost(now, id),
            // It was granted, and we have not heard of it yet.
            Some(
                Stage::Acquiring
                | Stage::Waiting
                | Stage::Unsure
                | Stage::Confirming { .. }
                | Stage::Passing { .. }
                | Stage::Replicating { .. },
            ) => {
                self.start_over(now, id);
                self.retry(now, id);
            }
            _ => {}
        }
    }

    /// Of a chain, the one that has the lock now hears of it.
    pub(crate) fn wanted(&mut self, token: Token) {
        let id = self.ids.get(&token).copied();
        if let Some(id) = id.filter(|id| self.claims.get(id).is_some_and(Claim::is_held)) {
            self.claims.report(Outcome::Wanted { id });
        }
    }

    /// The holder that the store was asked about hears of it, unless it has handed the lock over: the next one of its chain
    /// has the same token.
    pub(crate) fn wanted_of(&mut self, holder: &Bearer) {
        if self.ids.get(&holder.token) == Some(&holder.terms.id) {
            self.wanted(holder.token);
        }
    }

    /// Tells another connection about a lock that is held here.
    fn report(&mut self, now: Moment, channel: &str, token: Token) {
        let id = self.ids.get(&token);
        let claim = id.and_then(|id| self.claims.get(id));
        if let Some(Stage::Held { fence, granted }) = claim.map(|claim| claim.stage) {
            let report = Call::Report {
                channel: channel.into(),
                token,
                fence,
                held: now.since(granted),
                followers: self.followers(token),
                nested: self.nested_followers(token),
            };
            self.send(now, report);
        }
    }
}

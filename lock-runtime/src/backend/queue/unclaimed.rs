//! Releases of what no claim has any more: they are sent again until the server has carried them out.

use std::collections::HashSet;

use super::protocol::call::{Call, Sent};
use super::protocol::reply::Reply;
use super::protocol::step::Step;
use super::protocol::trouble::Trouble;
use super::{LONG_PAUSE, PAUSE, Queue};
use crate::backend::token::Token;
use crate::base::clock::Moment;

/// What a part had before it gave way, and what was granted after its caller had left.
#[derive(Debug)]
pub(super) struct Unclaimed<S: Step> {
    tokens: HashSet<Token>,
    /// The releases that were refused for now, and when they are sent again.
    refused: Vec<(Moment, Sent<S>)>,
}

impl<S: Step> Default for Unclaimed<S> {
    fn default() -> Self {
        Self {
            tokens: HashSet::new(),
            refused: Vec::new(),
        }
    }
}

impl<S: Step> Unclaimed<S> {
    pub(super) fn next_wakeup(&self) -> Option<Moment> {
        self.refused.iter().map(|(at, _)| *at).min()
    }
}

impl<S: Step> Queue<S> {
    /// Sends a release under a token that no claim has.
    pub(super) fn release_unclaimed(&mut self, now: Moment, call: Call<S>) {
        if let Some(token) = released_token(&call) {
            self.unclaimed.tokens.insert(token);
        }
        self.send(now, call);
    }

    /// Whether a call is such a release. In a chain, a token may be another claim's by now.
    pub(super) fn is_unclaimed(&self, call: &Call<S>) -> bool {
        let is_ours = |it: &Token| self.unclaimed.tokens.contains(it);
        let token = released_token(call).filter(is_ours);
        token.is_some_and(|it| !self.ids.contains_key(&it))
    }

    /// The answer to such a release, which was sent then for the first time.
    pub(super) fn unclaimed_replied(
        &mut self,
        now: Moment,
        at: Moment,
        call: Call<S>,
        result: &Result<Reply<S>, Trouble>,
    ) {
        let (Call::Release { bearer, .. } | Call::Leave(bearer)) = &call else {
            return;
        };
        let may_last = now < at.after(bearer.terms.ttl);
        match result {
            Err(Trouble::Unknown(_) | Trouble::NotRun) if may_last => self.send(at, call),
            Err(Trouble::NotNow(_)) if may_last => {
                let pause = (now.since(at) / 2).clamp(PAUSE, LONG_PAUSE);
                let again = (now.after(pause), Sent::new(call, at));
                self.unclaimed.refused.push(again);
            }
            // A grant whose release is forbidden ends with its ttl.
            _ => drop(self.unclaimed.tokens.remove(&bearer.token)),
        }
    }

    /// Sends what is due of that again.
    pub(super) fn release_again(&mut self, now: Moment) {
        let due = self.unclaimed.refused.extract_if(.., |(at, _)| *at <= now);
        self.calls.extend(due.map(|(_, sent)| sent));
    }
}

fn released_token<S>(call: &Call<S>) -> Option<Token> {
    match call {
        Call::Release { bearer, .. } | Call::Leave(bearer) => Some(bearer.token),
        _ => None,
    }
}

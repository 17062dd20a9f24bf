//! Releases of what no claim has any more, which are sent again until the server has carried them out.

use std::collections::HashSet;

use super::protocol::call::{Bearer, Call, Sent};
use super::protocol::step::Step;
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
    /// A release under a token that no claim has is about to be sent.
    pub(super) fn add(&mut self, call: &Call<S>) {
        self.tokens.extend(released(call).map(|it| it.token));
    }

    /// Under what such a release goes.
    pub(super) fn released<'c>(&self, call: &'c Call<S>) -> Option<&'c Bearer> {
        released(call).filter(|it| self.tokens.contains(&it.token))
    }

    /// It is sent again then.
    pub(super) fn send_at(&mut self, again: Moment, sent: Sent<S>) {
        self.refused.push((again, sent));
    }

    pub(super) fn forget(&mut self, token: Token) {
        self.tokens.remove(&token);
    }

    /// What is to be sent again now.
    pub(super) fn due(&mut self, now: Moment) -> impl Iterator<Item = Sent<S>> {
        let due = self.refused.extract_if(.., move |(at, _)| *at <= now);
        due.map(|(_, sent)| sent)
    }

    pub(super) fn next_due(&self) -> Option<Moment> {
        self.refused.iter().map(|(at, _)| *at).min()
    }
}

fn released<S>(call: &Call<S>) -> Option<&Bearer> {
    match call {
        Call::Release { bearer, .. } | Call::Leave(bearer) => Some(bearer),
        _ => None,
    }
}

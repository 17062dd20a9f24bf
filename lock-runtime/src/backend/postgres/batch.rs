//! Which calls of a turn go to the server together: each call of a function is a transaction
//! of its own, and most of what it costs.

use std::collections::HashSet;

use super::steps::{Call, Sent};
use crate::backend::queue::protocol::call::{Company, Ticket};
use crate::types::key::LockKey;
use crate::types::kind::Kind;

/// The largest batch of acquires and releases: their locks are closed to others meanwhile.
const MOST: usize = 64;
/// The most leases that one call renews.
const MOST_RENEWALS: usize = 100;

/// The claims' part of one call of a function.
#[derive(Debug)]
pub(super) enum Batch {
    One(Sent),
    Renewals(Vec<Sent>),
    /// Acquires and releases of the common form.
    Many(Vec<Sent>),
}

impl Batch {
    pub(super) fn into_calls(self) -> Vec<Sent> {
        match self {
            Self::One(sent) => vec![sent],
            Self::Renewals(all) | Self::Many(all) => all,
        }
    }

    pub(super) fn calls(&self) -> &[Sent] {
        match self {
            Self::One(sent) => std::slice::from_ref(sent),
            Self::Renewals(all) | Self::Many(all) => all,
        }
    }
}

/// Puts the calls of a turn together, unless they are to go `apart`. Calls about the same lock
/// keep their order, except that renewals come first.
pub(super) fn batches(calls: Vec<Sent>, apart: bool) -> Vec<Batch> {
    if apart || calls.len() == 1 {
        return calls.into_iter().map(Batch::One).collect();
    }
    let (renewals, others): (Vec<_>, Vec<_>) = calls
        .into_iter()
        .partition(|it| matches!(it.call, Call::Renew(_)));
    // Locks with a queue wait for other transactions, and would let the others wait too.
    let crowded: HashSet<LockKey> = others.iter().filter_map(crowded).cloned().collect();
    let (common, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|it| {
        let key = it.call.key();
        common(&it.call).is_some() && key.is_some_and(|key| !crowded.contains(key))
    });
    let mut batches = Vec::new();
    cut(renewals, MOST_RENEWALS, Batch::Renewals, &mut batches);
    cut(common, MOST, Batch::Many, &mut batches);
    batches.extend(others.into_iter().map(Batch::One));
    batches
}

/// The lock of a call that is likely to meet others at the server, or that has to come
/// before or behind other calls about the same lock.
fn crowded(sent: &Sent) -> Option<&LockKey> {
    let is_crowded = match &sent.call {
        Call::Release { crowded, .. } => *crowded,
        Call::Acquire { company, .. } => *company == Company::More,
        _ => true,
    };
    let is_common = common(&sent.call).is_some();
    sent.call.key().filter(|_| is_crowded || !is_common)
}

fn cut(mut calls: Vec<Sent>, most: usize, batch: fn(Vec<Sent>) -> Batch, batches: &mut Vec<Batch>) {
    while !calls.is_empty() {
        let rest = calls.split_off(calls.len().min(most));
        batches.push(match <[Sent; 1]>::try_from(calls) {
            Ok([one]) => Batch::One(one),
            Err(several) => batch(several),
        });
        calls = rest;
    }
}

/// The ticket of a call that may be in a batch with others.
pub(super) fn common(call: &Call) -> Option<&Ticket> {
    let ticket = match call {
        Call::Acquire {
            ticket,
            position: None,
            ..
        } if !ticket.terms.wait.is_try() => ticket,
        Call::Release {
            ticket, cooldown, ..
        } if cooldown.is_zero() => ticket,
        _ => return None,
    };
    (ticket.terms.kind == Kind::Exclusive).then_some(ticket)
}

//! Decides which calls of a turn go to the server together: each call of a function is a transaction
//! of its own, which is most of its cost.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::steps::{Call, Sent};
use super::time_limit::is_short;
use crate::backend::queue::protocol::call::{Bearer, Company, LONGEST};
use crate::backend::token::Token;
use crate::types::key::LockKey;
use crate::types::kind::Kind;

/// The largest batch of acquires and releases: their locks are closed to others meanwhile.
const MOST: usize = 64;
/// The most leases that one call renews.
const MOST_RENEWALS: usize = 100;

/// The claims' part of one call of a function.
#[derive(Debug)]
pub(crate) enum Batch {
    One(Sent),
    Renewals(Vec<Sent>),
    /// Acquires and releases of the common form.
    Many(Vec<Sent>),
}

impl Batch {
    pub(crate) fn into_calls(self) -> Vec<Sent> {
        match self {
            Self::One(sent) => vec![sent],
            Self::Renewals(all) | Self::Many(all) => all,
        }
    }

    pub(crate) fn calls(&self) -> &[Sent] {
        match self {
            Self::One(sent) => std::slice::from_ref(sent),
            Self::Renewals(all) | Self::Many(all) => all,
        }
    }

    /// How long its answer may take: the shortest time limit of its calls.
    pub(crate) fn timeout(&self) -> Duration {
        let timeouts = self.calls().iter().map(|it| it.call.timeout());
        timeouts.min().unwrap_or(LONGEST)
    }

    /// The tokens of its renewals.
    pub(crate) fn renewed(&self) -> Vec<Token> {
        let tokens = self.calls().iter().filter_map(|it| match &it.call {
            Call::Renew { bearer, .. } => Some(bearer.token),
            _ => None,
        });
        tokens.collect()
    }

    /// The lock that all its calls are about.
    pub(crate) fn lock(&self) -> Option<&LockKey> {
        let mut keys = self.calls().iter().map(|it| it.call.key());
        let first = keys.next()?;
        first.filter(|_| keys.all(|key| key == first))
    }
}

/// Puts the calls of a turn together, unless they are to go `apart`. Calls about the same lock
/// keep their order, except that renewals come first; those of one lock go together even apart, since each
/// would wait for its row.
pub(crate) fn batches(calls: Vec<Sent>, apart: bool) -> Vec<Batch> {
    if calls.len() == 1 {
        return calls.into_iter().map(Batch::One).collect();
    }
    let (mut renewals, others): (Vec<_>, Vec<_>) = calls
        .into_iter()
        .partition(|it| matches!(it.call, Call::Renew { .. }));
    let mut batches = Vec::new();
    if apart {
        for_each_lock(renewals, |calls| {
            cut(calls, MOST_RENEWALS, Batch::Renewals, &mut batches);
        });
        batches.sort_by_key(|it| (it.timeout(), it.calls().len() > 1));
        batches.extend(others.into_iter().map(Batch::One));
        return batches;
    }
    // Locks with a queue wait for other transactions, and would let the others wait too.
    let apart: HashMap<LockKey, bool> = crowded(&others);
    let (common, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|it| common(&it.call).is_some_and(|it| !apart.contains_key(&it.terms.key)));
    // In the order of full names, as in batches of acquisitions: two of them do not wait for each other in a circle.
    renewals.sort_by_cached_key(|it| it.call.key().map(|key| format!("{key}}}")));
    // Those that cannot wait long go first, and by themselves.
    let (short, long): (Vec<_>, Vec<_>) = renewals
        .into_iter()
        .partition(|it| is_short(it.call.timeout()));
    cut(short, MOST_RENEWALS, Batch::Renewals, &mut batches);
    cut(long, MOST_RENEWALS, Batch::Renewals, &mut batches);
    cut(common, MOST, Batch::Many, &mut batches);
    let (alike, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|it| {
        it.call
            .key()
            .is_some_and(|key| apart.get(key) == Some(&true))
    });
    for_each_lock(alike, |calls| cut(calls, MOST, Batch::Many, &mut batches));
    batches.extend(others.into_iter().map(Batch::One));
    batches
}

/// The locks whose calls go behind those of all others: of which one is likely to meet others at
/// the server, or does not have the common form; and whether all about a lock have it.
fn crowded(calls: &[Sent]) -> HashMap<LockKey, bool> {
    let mut locks: HashMap<LockKey, bool> = HashMap::new();
    let mut crowded = HashSet::new();
    for Sent { call, .. } in calls {
        let Some(key) = call.key() else { continue };
        let is_common = common(call).is_some();
        *locks.entry(key.clone()).or_insert(true) &= is_common;
        let meets_others = match call {
            Call::Release { crowded, .. } => *crowded,
            Call::Acquire { company, .. } => *company == Company::More,
            _ => false,
        };
        if meets_others || !is_common {
            crowded.insert(key);
        }
    }
    locks.retain(|key, _| crowded.contains(key));
    locks
}

/// Hands out the calls of each lock, in their order.
fn for_each_lock(calls: Vec<Sent>, mut take: impl FnMut(Vec<Sent>)) {
    let mut numbers: HashMap<LockKey, usize> = HashMap::new();
    let mut locks: Vec<Vec<Sent>> = Vec::new();
    for sent in calls {
        let Some(key) = sent.call.key() else {
            continue;
        };
        let number = *numbers.entry(key.clone()).or_insert(locks.len());
        match locks.get_mut(number) {
            Some(calls) => calls.push(sent),
            None => locks.push(vec![sent]),
        }
    }
    for calls in locks {
        take(calls);
    }
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

/// The lock of a call that takes its row, of which a connection may have many.
pub(crate) fn takes_row(call: &Call) -> Option<&LockKey> {
    match call {
        Call::Acquire { .. } | Call::Ask(_) | Call::Leave(_) => call.key(),
        Call::Renew { bearer, .. }
        | Call::Release { bearer, .. }
        | Call::Shorten { bearer, .. } => {
            (bearer.terms.kind != Kind::Exclusive).then_some(&bearer.terms.key)
        }
        _ => None,
    }
}

/// The bearer of a call that may be in a batch with others.
pub(crate) fn common(call: &Call) -> Option<&Bearer> {
    let bearer = match call {
        Call::Acquire {
            bearer,
            position: None,
            ..
        } if bearer.terms.simply_waits() => bearer,
        Call::Release {
            bearer, cooldown, ..
        } if cooldown.is_zero() => bearer,
        _ => return None,
    };
    (bearer.terms.kind == Kind::Exclusive).then_some(bearer)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::clock::Moment;
    use crate::types::terms::{LeaseId, Terms};

    fn bearer(key: &str) -> Bearer {
        let terms = Terms::of(LeaseId(1), key, Duration::from_secs(10));
        Bearer::new(Token::new().expect("random numbers"), terms.into())
    }

    fn sent(call: Call) -> Sent {
        Sent::new(call, Moment::from_nanos(1))
    }

    fn acquire(key: &str, company: Company) -> Sent {
        sent(Call::Acquire {
            bearer: bearer(key),
            position: None,
            company,
        })
    }

    fn release(key: &str) -> Sent {
        sent(Call::Release {
            bearer: bearer(key),
            cooldown: Duration::ZERO,
            crowded: false,
            noted: false,
        })
    }

    /// The kind of each batch, and the locks of its calls.
    fn put_together(calls: Vec<Sent>, apart: bool) -> Vec<String> {
        let name = |batch: &Batch| match batch {
            Batch::One(_) => "one",
            Batch::Renewals(_) => "renewals",
            Batch::Many(_) => "many",
        };
        let locks = |batch: &Batch| {
            let keys = batch.calls().iter().filter_map(|it| it.call.key());
            keys.map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let all = batches(calls, apart);
        all.iter()
            .map(|it| format!("{}: {}", name(it), locks(it)))
            .collect()
    }

    fn renew(key: &str) -> Call {
        let bearer = bearer(key);
        Call::Renew { bearer, note: None }
    }

    fn turn() -> Vec<Sent> {
        vec![
            acquire("a", Company::Unsaid),
            sent(renew("r")),
            acquire("hot", Company::More),
            sent(Call::Leave(bearer("left"))),
            release("hot"),
            release("left"),
            release("b"),
            sent(renew("s")),
        ]
    }

    #[test]
    fn locks_with_a_queue_go_behind_the_others_and_keep_their_order() {
        assert_eq!(
            put_together(turn(), false),
            [
                "renewals: r s",
                "many: a b",
                "many: hot hot",
                "one: left",
                "one: left"
            ]
        );
    }

    #[test]
    fn leases_are_renewed_in_the_order_of_names() {
        let renewals = ["b", "a", "ab"].map(|key| sent(renew(key)));
        // The names end in a brace, which is larger than letters.
        assert_eq!(put_together(renewals.into(), false), ["renewals: ab a b"]);
    }

    // Section: guarantees.md#the-lock-goes-on
    #[test]
    fn short_leases_are_renewed_first_and_by_themselves() {
        let brief = |key: &str| {
            let mut bearer = bearer(key);
            Arc::make_mut(&mut bearer.terms).ttl = Duration::from_secs(2);
            sent(Call::Renew { bearer, note: None })
        };
        let renewals = || vec![sent(renew("a")), brief("b"), sent(renew("c")), brief("d")];
        assert_eq!(
            put_together(renewals(), false),
            ["renewals: b d", "renewals: a c"]
        );
        let apart = ["one: b", "one: d", "one: a", "one: c"];
        assert_eq!(put_together(renewals(), true), apart);
    }

    #[test]
    fn calls_that_go_apart_keep_the_order_of_the_turn_behind_renewals() {
        let apart = put_together(turn(), true);
        assert_eq!(apart.len(), turn().len());
        assert_eq!(apart[..4], ["one: r", "one: s", "one: a", "one: hot"]);
    }

    #[test]
    fn renewals_of_one_lock_go_together_even_apart() {
        let renewals = ["r", "shared", "shared", "s"].map(|key| sent(renew(key)));
        assert_eq!(
            put_together(renewals.into(), true),
            ["one: r", "one: s", "renewals: shared shared"]
        );
    }

    #[test]
    fn no_batch_is_larger_than_a_function_takes() {
        let renewals = (0..150).map(|_| sent(renew("r")));
        let acquires = (0..65).map(|it| acquire(&it.to_string(), Company::Unsaid));
        let all = batches(renewals.chain(acquires).collect(), false);
        let sizes: Vec<_> = all.iter().map(|it| it.calls().len()).collect();
        assert_eq!(sizes, [100, 50, 64, 1]);
    }
}

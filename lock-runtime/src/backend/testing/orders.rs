//! The orders in which nested locks are asked for, and the pairs that come in both orders.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::query::Pattern;
use crate::types::terms::Terms;

#[derive(Debug, Default)]
pub(super) struct Orders {
    /// What was asked for under what.
    nested: BTreeMap<(LockKey, LockKey), Vec<Nested>>,
    allowed: Vec<[Pattern; 2]>,
}

/// A lock that was asked for under another one.
#[derive(Debug)]
struct Nested {
    outer: Arc<Terms>,
    inner: Arc<Terms>,
    /// The exclusive locks around both. Callers under the same one never wait for each other.
    around: BTreeSet<LockKey>,
}

impl Orders {
    /// Notes what is asked for under held locks. A caller that does not wait blocks nobody for long.
    pub(super) fn note(&mut self, inner: &Arc<Terms>, held: &[Arc<Terms>]) {
        if inner.wait.is_try() {
            return;
        }
        for outer in held {
            let others = held.iter().filter(|it| it.key != outer.key);
            let exclusive = others.filter(|it| it.kind == Kind::Exclusive);
            let around = exclusive.map(|it| it.key.clone()).collect();
            let pair = (outer.key.clone(), inner.key.clone());
            let known = self.nested.entry(pair).or_default();
            if known.iter().all(|it| it.around != around) {
                known.push(Nested {
                    outer: Arc::clone(outer),
                    inner: Arc::clone(inner),
                    around,
                });
            }
        }
    }

    pub(super) fn allow(&mut self, pair: [Pattern; 2]) {
        self.allowed.push(pair);
    }

    /// The first pair that was asked for in both orders, in words.
    pub(super) fn inversion(&self) -> Option<String> {
        let each_pair = self.nested.iter();
        let each_pair = each_pair.filter(|((outer, inner), _)| outer < inner);
        let mut pairs = each_pair.filter(|((outer, inner), _)| !self.is_allowed(outer, inner));
        pairs.find_map(|((outer, inner), nested)| {
            let inverted = self.nested.get(&(inner.clone(), outer.clone()))?;
            let mut both = nested
                .iter()
                .flat_map(|one| inverted.iter().map(move |other| (one, other)));
            let (one, other) = both.find(|(one, other)| one.around.is_disjoint(&other.around))?;
            Some(words(one, other))
        })
    }

    fn is_allowed(&self, one: &LockKey, other: &LockKey) -> bool {
        self.allowed.iter().any(|[first, second]| {
            first.matches(one) && second.matches(other)
                || first.matches(other) && second.matches(one)
        })
    }
}

fn words(one: &Nested, other: &Nested) -> String {
    let (outer, inner) = (&one.outer.key, &one.inner.key);
    let mut words = format!(
        "the locks `{outer}` and `{inner}` are taken in both orders, so two callers can wait for each other:"
    );
    for Nested { outer, inner, .. } in [one, other] {
        // Writing into a text does not fail.
        let _ = write!(
            words,
            "\n  `{}` by {}, and under it `{}` by {}",
            outer.key,
            place(outer),
            inner.key,
            place(inner)
        );
    }
    words
        + "\nTake both in one call, with several keys, or in the same order everywhere. \
           `Locks::allow_both_orders` allows the pair."
}

fn place(terms: &Terms) -> String {
    let function = terms.function.map_or_else(
        || "a request without a function".to_owned(),
        |it| format!("`{it}`"),
    );
    let at = terms.asked_at;
    at.map_or(function.clone(), |at| {
        format!("{function} at {}:{}", at.file(), at.line())
    })
}

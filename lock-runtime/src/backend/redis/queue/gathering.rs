//! Gathers an overview: finds the locks page by page, and asks about each page while the
//! next one is found.

use std::collections::BTreeSet;
use std::time::Duration;

use redis::Value;

use super::next::Next;
use crate::backend::name;
use crate::backend::redis::protocol::inspection::Inspect;
use crate::backend::redis::protocol::kind;
use crate::backend::redis::protocol::names::Layout;
use crate::backend::redis::protocol::reply::{number, text};
use crate::types::holder::Holder;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::overview::{Count, Overview, Summary};
use crate::types::query::Pattern;

/// How many locks one call asks about: the server does nothing else meanwhile.
const AT_ONCE: usize = 25;

/// An overview that is not complete yet.
#[derive(Debug)]
pub(super) struct Gathering {
    layout: Layout,
    pattern: Pattern,
    /// The locks that were found so far; a search may find one twice.
    found: BTreeSet<LockKey>,
    locks: Vec<Summary>,
    count: Option<Count>,
    /// How many calls are not answered yet.
    awaited: usize,
}

impl Gathering {
    /// One that waits for the first page, and for the counter of all locks if there is one.
    pub(super) fn new(pattern: Pattern, layout: Layout) -> Self {
        Self {
            layout,
            pattern,
            found: BTreeSet::new(),
            locks: Vec::new(),
            count: None,
            awaited: 1 + usize::from(layout.has_counter()),
        }
    }

    /// Takes in one page; the calls that ask about its locks, and where the next page begins.
    pub(super) fn page(&mut self, value: &Value) -> Option<(Vec<Inspect>, u64)> {
        let (cursor, keys) = read_page(value)?;
        let mut new = Vec::new();
        for (key, _) in keys {
            if self.pattern.matches(&key) && self.found.insert(key.clone()) {
                new.push(key);
            }
        }
        let at_once = if self.layout.has_counter() {
            AT_ONCE
        } else {
            1
        };
        let asks = new.chunks(at_once);
        let asks: Vec<_> = asks.map(|keys| Inspect::Overview(keys.into())).collect();
        self.awaited += asks.len() + usize::from(cursor != 0);
        self.awaited -= 1;
        Some((asks, cursor))
    }

    /// Takes in the facts about some locks.
    pub(super) fn facts(&mut self, keys: &[LockKey], value: &Value) -> Option<()> {
        let Value::Array(items) = value else {
            return None;
        };
        let [fence, now, facts @ ..] = &items[..] else {
            return None;
        };
        if facts.len() != keys.len() {
            return None;
        }
        let count = Count {
            fence: text(fence)?.parse().ok()?,
            raised_to: text(now)?.parse().ok()?,
        };
        if self.layout.has_counter() {
            self.count.get_or_insert(count);
        }
        for (key, facts) in keys.iter().zip(facts) {
            let summary = summary(key, facts)?;
            // It may have been released since it was found.
            if summary.held_by > 0 || summary.waiting > 0 {
                self.locks.push(summary);
            }
        }
        self.awaited -= 1;
        Some(())
    }

    /// These steps, unless everything is known.
    pub(super) fn next(&self, steps: Vec<Inspect>) -> Next {
        if self.awaited == 0 {
            Next::Answer
        } else {
            Next::Calls(steps)
        }
    }

    pub(super) fn overview(self) -> Overview {
        Overview::new(self.locks, self.count)
    }
}

/// What a key on the server is of its lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part {
    Owner,
    Queue,
}

/// One page of a search: where the next one begins, and the locks that were found by their
/// owner or their queue.
pub(super) fn read_page(value: &Value) -> Option<(u64, Vec<(LockKey, Part)>)> {
    let Value::Array(items) = value else {
        return None;
    };
    let [cursor, Value::Array(names)] = &items[..] else {
        return None;
    };
    let mut keys = Vec::new();
    for name in names {
        let name = text(name)?;
        // Neither a prefix nor a name has a brace in it.
        let rest = name.split_once(":{").and_then(|(_, it)| it.split_once('}'));
        match rest {
            Some((key, "")) => keys.push((LockKey::unchecked(key), Part::Owner)),
            Some((key, ":q")) => keys.push((LockKey::unchecked(key), Part::Queue)),
            _ => {}
        }
    }
    Some((text(cursor)?.parse().ok()?, keys))
}

fn summary(key: &LockKey, facts: &Value) -> Option<Summary> {
    let Value::Array(facts) = facts else {
        return None;
    };
    let [value, left, sharing, waiting, waited, names @ ..] = &facts[..] else {
        return None;
    };
    let value = text(value)?;
    let sharing = usize::try_from(number(sharing)?).ok()?;
    let mut holders = Vec::new();
    for pair in names.chunks_exact(2) {
        holders.push(name::holder(&text(&pair[0])?, lease(&pair[1])?));
    }
    // A missing key has -2 ms left.
    let is_owned = !matches!(left, Value::Int(-2));
    if is_owned && holders.is_empty() {
        holders.push(name::holder(&value, lease(left)?));
    }
    let kind = match value.strip_prefix('*') {
        Some(code) if sharing > 0 => kind::parse(code),
        _ => Some(Kind::Exclusive),
    };
    let waiting = usize::try_from(number(waiting)?).ok()?;
    Some(Summary {
        key: key.clone(),
        kind: kind.filter(|_| holders.iter().any(|it: &Holder| !it.resting)),
        held_by: sharing.max(holders.len()),
        holders,
        waiting,
        longest_wait: (waiting > 0).then_some(Duration::from_micros(number(waited)?)),
    })
}

/// What is left of a lease; `Some(None)` for one without an end.
#[expect(
    clippy::option_option,
    reason = "the outer one says that the reply is odd"
)]
pub(super) fn lease(left: &Value) -> Option<Option<Duration>> {
    match left {
        Value::Int(-1) => Some(None),
        Value::Int(left) => Some(Some(Duration::from_millis(
            u64::try_from(*left).unwrap_or(0),
        ))),
        _ => None,
    }
}

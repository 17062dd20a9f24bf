//! Gathers an overview: finds the locks page by page, and asks about each page while the
//! next one is found.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use redis::Value;

use super::scan::Page;
use super::{Server, holder, mismatch};
use crate::backend::queue::protocol::kind;
use crate::backend::redis::protocol::inspection::Inspect;
use crate::backend::redis::protocol::names::Layout;
use crate::backend::redis::protocol::reply::{number, text};
use crate::types::error::Cause;
use crate::types::holder::Holder;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::overview::{Count, Overview, Summary};
use crate::types::query::Pattern;

/// How many locks one call asks about: the server does nothing else meanwhile.
const AT_ONCE: usize = 25;

impl<C: Copy> Server<C> {
    pub(in crate::backend::redis) async fn overview(
        self,
        pattern: Pattern,
    ) -> Result<Overview, Cause> {
        let has_counter = self.layout.has_counter();
        let at_once = if has_counter { AT_ONCE } else { 1 };
        let ask_about = |keys: &[LockKey]| {
            let keys: Box<[LockKey]> = keys.into();
            (keys.clone(), self.ask(Inspect::Overview(keys)))
        };
        let (mut locks, mut first_count) = (Vec::new(), None);
        let mut asked = Vec::new();
        if has_counter {
            // It is wanted also if there is no lock.
            asked.push(ask_about(&[]));
        }
        let mut page = Some(self.page(&pattern, true, 0));
        // A search may find a lock twice.
        let mut found = BTreeSet::new();
        while page.is_some() || !asked.is_empty() {
            let mut new = Vec::new();
            if let Some(read) = page.take() {
                let read = Page::read(&read.await?).ok_or_else(mismatch)?;
                if read.cursor != 0 {
                    // First, so that the server answers it while we read the facts.
                    page = Some(self.page(&pattern, true, read.cursor));
                }
                let keys = read.into_keys();
                new.extend(keys.filter(|key| pattern.matches(key) && found.insert(key.clone())));
            }
            let next = new.chunks(at_once).map(ask_about).collect();
            for (keys, facts) in std::mem::replace(&mut asked, next) {
                let facts = facts_about(&keys, &facts.await?);
                let (count, mut summaries) = facts.ok_or_else(mismatch)?;
                if self.layout == Layout::Declared {
                    for lock in &mut summaries {
                        date(lock, count);
                    }
                }
                first_count.get_or_insert(count);
                locks.extend(summaries);
            }
        }
        Ok(Overview::new(locks, first_count.filter(|_| has_counter)))
    }
}

/// The counter of all locks, and those among some that are held or waited for.
pub(super) fn facts_about(keys: &[LockKey], value: &Value) -> Option<(Count, Vec<Summary>)> {
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
    let summaries = keys.iter().zip(facts).map(|(key, it)| summary(key, it));
    let mut summaries = summaries.collect::<Option<Vec<_>>>()?;
    // One may have been released since it was found.
    summaries.retain(|it| it.held_by > 0 || it.waiting > 0);
    Some((count, summaries))
}

/// The counter of a lock, where it has one of its own, is the server's time at the last grant. That
/// of a shared lock may have been to another holder.
fn date(lock: &mut Summary, count: Count) {
    let held = count.raised_to.checked_sub(count.fence);
    if let ([holder], Some(Kind::Exclusive), Some(held)) = (&mut lock.holders[..], lock.kind, held)
        && holder.process.is_some()
        && !holder.ticket
    {
        holder.since = SystemTime::now().checked_sub(Duration::from_micros(held));
    }
}

fn summary(key: &LockKey, facts: &Value) -> Option<Summary> {
    let Value::Array(facts) = facts else {
        return None;
    };
    let [value, left, sharing, waiting, waited, granted, sharers @ ..] = &facts[..] else {
        return None;
    };
    let name = text(value)?;
    let sharing = usize::try_from(number(sharing)?).ok()?;
    let mut holders = Vec::new();
    let sharers = sharers.chunks_exact(3);
    let taken = match sharers.remainder() {
        [Value::Array(taken)] => taken,
        _ => &Vec::new(),
    };
    for (at, facts) in sharers.enumerate() {
        let mut holder = holder(facts)?;
        if let Some(taken) = taken.get(at) {
            holder.permits = u32::try_from(number(taken)?).unwrap_or(u32::MAX);
        }
        holders.push(holder);
    }
    // A missing key has -2 ms left.
    let is_owned = !matches!(left, Value::Int(-2));
    if is_owned && holders.is_empty() {
        holders.push(holder(&[value.clone(), left.clone(), granted.clone()])?);
    }
    let kind = match name.strip_prefix('*') {
        Some(code) if sharing > 0 => kind::parse(code),
        _ => Some(Kind::Exclusive),
    };
    let waiting = usize::try_from(number(waiting)?).ok()?;
    Some(Summary {
        key: key.clone(),
        kind: kind.filter(|_| holders.iter().any(|it: &Holder| !it.cooling_down)),
        held_by: sharing.max(holders.len()),
        holders,
        waiting,
        longest_wait: (waiting > 0).then_some(Duration::from_micros(number(waited)?)),
    })
}

//! Finds locks, page by page.

use std::time::Duration;

use super::Inspector;
use super::status::holder;
use crate::backend::queue::protocol::kind;
use crate::backend::sql::replies::mismatch;
use crate::backend::sql::row::Row;
use crate::backend::sql::steps::PAGE;
use crate::backend::sql::steps::{Inspect, Page};
use crate::types::error::Cause;
use crate::types::key::LockKey;
use crate::types::overview::{Overview, Summary};
use crate::types::query::Pattern;

impl Inspector {
    pub(crate) async fn list(self, pattern: Pattern) -> Result<Vec<LockKey>, Cause> {
        let mut keys = Vec::new();
        let mut after = Box::<str>::default();
        loop {
            let rows = self.ask(Inspect::List(self.page(&pattern, &after))).await?;
            let names = rows.iter().filter_map(|row| row.text(0));
            keys.extend(names.filter_map(|it| self.names.key(it)));
            match next(&rows, rows.len(), &after)? {
                Some(name) => after = name,
                None => break,
            }
        }
        keys.retain(|key| pattern.matches(key));
        // The full names have another order.
        keys.sort_unstable();
        Ok(keys)
    }

    pub(crate) async fn overview(self, pattern: Pattern) -> Result<Overview, Cause> {
        let mut locks: Vec<Summary> = Vec::new();
        let mut after = Box::<str>::default();
        loop {
            let page = self.page(&pattern, &after);
            let rows = self.ask(Inspect::Overview(page)).await?;
            let before = locks.len();
            for row in &rows {
                self.note(&mut locks, row).ok_or_else(mismatch)?;
            }
            match next(&rows, locks.len() - before, &after)? {
                Some(name) => after = name,
                None => break,
            }
        }
        locks.retain(|it| pattern.matches(&it.key));
        Ok(Overview::new(locks, None))
    }

    fn page(&self, pattern: &Pattern, after: &str) -> Page {
        let glob = self.names.name(&LockKey::unchecked(pattern.as_str()));
        let after = after.into();
        Page { glob, after }
    }

    /// A shared lock has a row for each of its first holders.
    fn note(&self, locks: &mut Vec<Summary>, row: &Row) -> Option<()> {
        let key = self.names.key(row.text(0)?)?;
        if locks.last().is_none_or(|it| it.key != key) {
            let waiting = row.number(3)?;
            locks.push(Summary {
                key,
                kind: row.text(1).and_then(kind::parse),
                holders: Vec::new(),
                held_by: row.number(2)?,
                waiting,
                longest_wait: row
                    .number(4)
                    .filter(|_| waiting > 0)
                    .map(Duration::from_micros),
            });
        }
        if let Some(name) = row.text(5) {
            let left = Duration::from_millis(row.number(6)?);
            let mut holder = holder(name, left, row.number(7), row.number(8));
            holder.permits = row.text(1).map_or(1, kind::permits);
            locks.last_mut()?.holders.push(holder);
        }
        Some(())
    }
}

/// The name behind which the next page begins, unless this one, with so many locks, is the last. An error if it does not
/// go on behind `after`, by the order of bytes in which the statements sort: there would be no end.
fn next(rows: &[Row], locks: usize, after: &str) -> Result<Option<Box<str>>, Cause> {
    let last = rows.last().filter(|_| locks >= PAGE);
    match last.and_then(|row| row.text(0)) {
        Some(name) if name <= after => Err(mismatch().into()),
        name => Ok(name.map(Into::into)),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_page_that_does_not_go_on_behind_the_one_before_ends_the_search() {
        let row = || Row::new(Bytes::from_static(b"m"), vec![Some(0..1)]);
        let rows: Vec<_> = (0..PAGE).map(|_| row()).collect();
        let next = |after| next(&rows, rows.len(), after).ok().flatten();
        assert_eq!(next("l").as_deref(), Some("m"));
        assert_eq!((next("m"), next("n")), (None, None));
    }
}

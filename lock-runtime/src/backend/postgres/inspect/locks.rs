//! Finds locks, page by page.

use std::time::Duration;

use super::Inspector;
use super::status::holder;
use crate::backend::postgres::functions::PAGE;
use crate::backend::postgres::protocol::row::Row;
use crate::backend::postgres::replies::mismatch;
use crate::backend::postgres::steps::{Inspect, Page};
use crate::backend::queue::protocol::kind;
use crate::types::error::Cause;
use crate::types::key::LockKey;
use crate::types::overview::{Overview, Summary};
use crate::types::query::Pattern;

impl Inspector {
    pub(in crate::backend::postgres) async fn list(
        self,
        pattern: Pattern,
    ) -> Result<Vec<LockKey>, Cause> {
        let mut keys = Vec::new();
        let mut after = Box::default();
        loop {
            let rows = self.ask(Inspect::List(self.page(&pattern, after))).await?;
            let names = rows.iter().filter_map(|row| row.text(0));
            keys.extend(names.filter_map(|it| self.functions.key(it)));
            match next(&rows, rows.len()) {
                Some(name) => after = name,
                None => break,
            }
        }
        keys.retain(|key| pattern.matches(key));
        // The full names have another order.
        keys.sort_unstable();
        Ok(keys)
    }

    pub(in crate::backend::postgres) async fn overview(
        self,
        pattern: Pattern,
    ) -> Result<Overview, Cause> {
        let mut locks: Vec<Summary> = Vec::new();
        let mut after = Box::default();
        loop {
            let page = self.page(&pattern, after);
            let rows = self.ask(Inspect::Overview(page)).await?;
            let before = locks.len();
            for row in &rows {
                self.note(&mut locks, row).ok_or_else(mismatch)?;
            }
            match next(&rows, locks.len() - before) {
                Some(name) => after = name,
                None => break,
            }
        }
        locks.retain(|it| pattern.matches(&it.key));
        Ok(Overview::new(locks, None))
    }

    fn page(&self, pattern: &Pattern, after: Box<str>) -> Page {
        let glob = self.functions.name(&LockKey::unchecked(pattern.as_str()));
        Page { glob, after }
    }

    /// A shared lock has a row for each of its first holders.
    fn note(&self, locks: &mut Vec<Summary>, row: &Row) -> Option<()> {
        let key = self.functions.key(row.text(0)?)?;
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

/// The name behind which the next page begins, unless this one, with so many locks, is the last.
fn next(rows: &[Row], locks: usize) -> Option<Box<str>> {
    let last = rows.last().filter(|_| locks >= PAGE)?;
    last.text(0).map(Into::into)
}

//! The last grants of a lock, from the table that the functions keep.

use std::time::{Duration, SystemTime};

use super::Inspector;
use crate::backend::name;
use crate::backend::queue::protocol::kind;
use crate::backend::sql::replies::mismatch;
use crate::backend::sql::row::Row;
use crate::backend::sql::steps::Inspect;
use crate::types::error::Cause;
use crate::types::fence::FencingToken;
use crate::types::history::{self, Grant, GrantEnd};
use crate::types::key::LockKey;

impl Inspector {
    pub(crate) async fn history(self, key: LockKey) -> Result<Vec<Grant>, Cause> {
        let rows = self.ask(Inspect::History(key)).await?;
        let grants = rows.iter().rev().map(read).collect::<Option<Vec<_>>>();
        let (mut grants, held): (Vec<_>, Vec<_>) = grants.ok_or_else(mismatch)?.into_iter().unzip();
        let held: Vec<_> = held.into_iter().flatten().collect();
        history::note_expired(&mut grants, |it| held.contains(&it.id));
        grants.reverse();
        Ok(grants)
    }
}

/// A grant, and its identifier if it holds the lock now.
fn read(row: &Row) -> Option<(Grant, Option<Box<str>>)> {
    let holder = name::holder(row.text(1)?, None);
    let held = row.truth(6)?.then(|| holder.id.clone());
    let fence = FencingToken::new(row.number(2)?);
    let mut grant = Grant::new(holder, kind::parse(row.text(0)?)?, fence, moment(row, 3)?);
    grant.until = moment(row, 4);
    grant.end = match row.text(5) {
        Some("released") => Some(GrantEnd::Released),
        Some("revoked") => Some(GrantEnd::Revoked),
        _ => None,
    };
    Some((grant, held))
}

fn moment(row: &Row, column: usize) -> Option<SystemTime> {
    let since = Duration::from_micros(row.number(column)?);
    SystemTime::UNIX_EPOCH.checked_add(since)
}

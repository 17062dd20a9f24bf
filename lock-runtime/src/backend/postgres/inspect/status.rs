//! The holders and waiters of a lock.

use std::time::{Duration, SystemTime};

use super::Inspector;
use crate::backend::name;
use crate::backend::postgres::protocol::row::Row;
use crate::backend::postgres::replies::mismatch;
use crate::backend::postgres::steps::Inspect;
use crate::backend::queue::protocol::kind;
use crate::types::error::Cause;
use crate::types::fence::FencingToken;
use crate::types::holder::{Holder, Status, Waiter};
use crate::types::key::LockKey;

impl Inspector {
    pub(in crate::backend::postgres) async fn status(self, key: LockKey) -> Result<Status, Cause> {
        let rows = self.ask(Inspect::Status(key.clone())).await?;
        let mut status = Status::free(key);
        for row in &rows {
            note(&mut status, row).ok_or_else(mismatch)?;
        }
        Ok(status)
    }
}

fn note(status: &mut Status, row: &Row) -> Option<()> {
    match row.text(0)? {
        "queue" => status.waiting = row.number(3)?,
        "holder" => {
            let left = Duration::from_millis(row.number(5)?);
            let mut holder = holder(row.text(2)?, left, row.number(3), row.number(4));
            holder.permits = kind::permits(row.text(1)?);
            if !holder.cooling_down {
                status.kind = kind::parse(row.text(1)?);
            }
            status.holders.push(holder);
        }
        "waiter" => {
            let who = name::holder(row.text(2)?, None);
            let waited = row.number(4).map(Duration::from_micros);
            let kind = kind::parse(row.text(1)?)?;
            status.waiters.push(Waiter::new(who, kind, waited));
        }
        _ => {}
    }
    Some(())
}

/// A holder that has released the lock has no number any more.
pub(super) fn holder(name: &str, left: Duration, fence: Option<u64>, age: Option<u64>) -> Holder {
    let holder = name::holder(name, Some(left));
    if holder.cooling_down || holder.ticket {
        return holder;
    }
    let age = age.map(Duration::from_micros);
    Holder {
        fencing_token: fence.map(FencingToken::new),
        since: age.and_then(|age| SystemTime::now().checked_sub(age)),
        ..holder
    }
}

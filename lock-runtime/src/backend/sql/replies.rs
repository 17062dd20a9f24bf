//! Reads what the functions of a database answer.

use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::batch::Batch;
use super::row::Row;
use super::steps::{Call, Reply, Sent};
use crate::backend::queue::protocol::ahead::Ahead;
use crate::backend::queue::protocol::reply::Standing;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::types::crowd::Crowd;
use crate::types::error::Cause;

/// The parts of an answer, for the calls of its batch.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    pub(crate) all: Vec<(Sent, Result<Reply, Trouble>)>,
    /// For how long nothing is granted, if the server says so.
    pub(crate) quarantine: Option<Duration>,
    /// Whether the calls are to be sent again one by one.
    pub(crate) apart: bool,
}

impl Replies {
    /// Reads an answer. With a `doubt`, what it grants may not be granted.
    pub(crate) fn read(
        batch: Batch,
        answer: Result<Vec<Row>, Trouble>,
        doubt: Option<Cause>,
    ) -> Self {
        let mut this = Self::default();
        let rows = match answer {
            Ok(rows) => rows,
            Err(trouble) => {
                // Another transaction may be in the way of one of them. If that is about the lock of all, each
                // would wait for it in turn.
                let is_about_several = batch.calls().len() > 1 && batch.lock().is_none();
                this.apart = is_about_several && matches!(trouble, Trouble::NotNow(_));
                let trouble = if this.apart { Trouble::NotRun } else { trouble };
                let calls = batch.into_calls().into_iter();
                this.all = calls.map(|it| (it, Err(trouble.clone()))).collect();
                return this;
            }
        };
        match batch {
            Batch::One(sent) => {
                let reply = this.one(&sent.call, rows);
                this.all.push((sent, reply));
            }
            Batch::Renewals(all) => this.renewed(all, &rows),
            Batch::Many(all) => this.many(all, &rows),
        }
        if let Some(cause) = doubt {
            this.doubt(&cause);
        }
        this
    }

    fn one(&mut self, call: &Call, mut rows: Vec<Row>) -> Result<Reply, Trouble> {
        if let Call::Step(_) = call {
            return Ok(Reply::Step(rows));
        }
        let row = rows.pop().ok_or_else(mismatch)?;
        match call {
            Call::Acquire { .. } => self.acquired(&row),
            Call::Ask(bearers) => self.asked(&row, bearers.len()),
            Call::Renew { .. } | Call::Raise { .. } | Call::Shorten { .. } => {
                let ours = truths(&[row]).into_iter().next();
                ours.map(Reply::Ours).ok_or_else(mismatch)
            }
            Call::Downgrade(_) => row.truth(0).map(Reply::Ours).ok_or_else(|| {
                Trouble::not_now("a transaction that has asserted the fencing token is open")
            }),
            _ => row.truth(0).map(Reply::Ours).ok_or_else(mismatch),
        }
    }

    fn renewed(&mut self, all: Vec<Sent>, rows: &[Row]) {
        let mut ours = truths(rows).into_iter();
        for sent in all {
            let reply = ours.next().map(Reply::Ours).ok_or_else(mismatch);
            self.all.push((sent, reply));
        }
    }

    /// The rows are in another order than the calls.
    fn many(&mut self, all: Vec<Sent>, rows: &[Row]) {
        let mut replies: Vec<_> = all.iter().map(|_| Err(mismatch())).collect();
        for row in rows {
            let call = row.number::<usize>(8).and_then(|it| it.checked_sub(1));
            if let Some(reply) = call.and_then(|it| replies.get_mut(it)) {
                *reply = match row.text(0) {
                    Some("ours") => Ok(Reply::Ours(true)),
                    Some("not ours") => Ok(Reply::Ours(false)),
                    _ => self.acquired(row),
                };
            }
        }
        self.all = all.into_iter().zip(replies).collect();
    }

    /// Reads a `reply`.
    fn acquired(&mut self, row: &Row) -> Result<Reply, Trouble> {
        // All who wait before a newcomer joins come before it.
        let before = row.number(5).unwrap_or(0);
        let ahead = || ahead(row, 3, Some(before)).ok_or_else(mismatch);
        match row.text(0) {
            Some("granted") => {
                let fence = row.number(1).ok_or_else(mismatch)?;
                Ok(Reply::Granted { fence })
            }
            Some("waiting") => Ok(Reply::Waiting {
                position: row.number(2).ok_or_else(mismatch)?,
                ahead: ahead()?,
            }),
            Some("busy") => Ok(Reply::Busy { ahead: ahead()? }),
            Some("gone") => Ok(Reply::Gone),
            Some("no ticket") => Ok(Reply::NoTicket),
            Some("quarantined") => Err(self.quarantined(row, 3)),
            _ => Err(mismatch()),
        }
    }

    fn asked(&mut self, row: &Row, count: usize) -> Result<Reply, Trouble> {
        let Some(fences) = numbers(row, 5) else {
            return Err(self.quarantined(row, 0));
        };
        if fences.len() != count {
            return Err(mismatch());
        }
        let standing = |fence: i64| match u64::try_from(fence) {
            Err(_) => Standing::Gone,
            Ok(0) => Standing::Waiting,
            Ok(fence) => Standing::Granted { fence },
        };
        Ok(Reply::Asked {
            ahead: ahead(row, 0, before(row)).ok_or_else(mismatch)?,
            standings: fences.into_iter().map(standing).collect(),
        })
    }

    fn quarantined(&mut self, row: &Row, left: usize) -> Trouble {
        let left = row.number(left).map(Duration::from_millis);
        self.quarantine = self.quarantine.max(left);
        let left = left.unwrap_or_default();
        Trouble::not_now(&format!(
            "no lock is granted for another {left:.1?}: the server may have forgotten locks (`quarantine`)"
        ))
    }

    /// A standby may lack the grants and renewals of this call.
    fn doubt(&mut self, cause: &Cause) {
        for (sent, reply) in &mut self.all {
            if reply.as_ref().is_ok_and(|it| sent.call.is_held_by(it)) {
                *reply = Err(Trouble::Unknown(Cause::clone(cause)));
            }
        }
    }
}

pub(crate) fn mismatch() -> Trouble {
    let said = io::Error::other("the answer of the function does not match");
    Trouble::Unknown(Arc::new(said))
}

/// How many come before those that an `ask` was about. Only some functions count them.
fn before(row: &Row) -> Option<u32> {
    let is_behind = row.number(4) == Some(0);
    row.number(6).or_else(|| (!is_behind).then_some(0))
}

/// Reads how much is left of the lease, the holder, and how many wait for how long.
fn ahead(row: &Row, first: usize, before: Option<u32>) -> Option<Ahead> {
    Some(Ahead {
        before,
        owner: row.text(first + 1).unwrap_or_default().into(),
        left: Some(Duration::from_millis(row.number(first)?)),
        crowd: Crowd {
            waiting: row.number(first + 2).unwrap_or(0),
            longest: Duration::from_millis(row.number(first + 3).unwrap_or(0)),
            ..Crowd::default()
        },
    })
}

/// The array of truth values in the only row.
pub(crate) fn truths(rows: &[Row]) -> Vec<bool> {
    let items = rows.first().and_then(|row| list(row, 0));
    let items = items.unwrap_or_default().into_iter();
    items.map(|it| it == "t").collect()
}

/// The items of an array of truth values or numbers, in which there are no quotes.
fn list(row: &Row, column: usize) -> Option<Vec<&str>> {
    let items = row.text(column)?.strip_prefix('{')?.strip_suffix('}')?;
    Some(items.split(',').filter(|it| !it.is_empty()).collect())
}

/// What holders have become, in the only row.
pub(crate) fn standings(rows: &[Row]) -> Vec<u8> {
    let row = rows.first();
    row.and_then(|row| numbers(row, 0)).unwrap_or_default()
}

fn numbers<N: FromStr>(row: &Row, column: usize) -> Option<Vec<N>> {
    let items = list(row, column)?.into_iter();
    items.map(|it| it.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::queue::protocol::call::Bearer;
    use crate::backend::token::Token;
    use crate::base::clock::Moment;
    use crate::types::terms::{LeaseId, Terms};

    fn leave(key: &str) -> Sent {
        let terms = Terms::of(LeaseId(1), key, Duration::from_secs(10));
        let token = Token::new().expect("random numbers");
        let call = Call::Leave(Bearer::new(token, terms.into()));
        Sent::new(call, Moment::from_nanos(1))
    }

    // Section: guarantees.md#the-lock-goes-on
    #[test]
    fn calls_about_one_lock_do_not_wait_one_by_one_for_what_is_in_the_way_of_all() {
        for (keys, apart) in [(["k", "k"], false), (["k", "l"], true)] {
            let waited = Err(Trouble::not_now("it has waited for a row"));
            let replies = Replies::read(Batch::Many(keys.map(leave).into()), waited, None);
            assert_eq!(replies.apart, apart, "{keys:?}");
            for (_, reply) in &replies.all {
                let goes_again = matches!(reply, Err(Trouble::NotRun));
                assert_eq!(goes_again, apart, "{keys:?}");
            }
        }
    }
}

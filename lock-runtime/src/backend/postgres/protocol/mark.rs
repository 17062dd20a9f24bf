//! The mark of a call, with which each row of its answer has to end.
//!
//! If a client disconnects from `PgBouncer` 1.18 between the answers to several calls, the next client of that
//! connection gets the other answers, which could pass for its own grants.

use std::io;

use super::answer::Answer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u128);

impl Mark {
    /// One that no other call has, of this client or another.
    pub(crate) fn new() -> Self {
        Self(fastrand::u128(..))
    }

    /// A statement whose rows end with the mark.
    pub(super) fn on(self, statement: &str) -> String {
        format!(
            "SELECT answer.*, '{:032x}' FROM ({statement}) AS answer",
            self.0
        )
    }

    /// Fails if the answer belongs to another call.
    pub(crate) fn demand(self, answer: &Answer) -> io::Result<()> {
        let mark = format!("{:032x}", self.0);
        let rows = answer.result.as_deref().unwrap_or_default();
        if rows.iter().all(|row| row.last() == Some(&*mark)) {
            return Ok(());
        }
        let why = "the pooler delivered the answer to a call of another client";
        Err(io::Error::other(why))
    }
}

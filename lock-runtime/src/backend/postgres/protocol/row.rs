//! One row of an answer, whose values are text.

use std::io;
use std::ops::Range;
use std::str::FromStr;

use bytes::Bytes;
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::message::backend::DataRowBody;

#[derive(Clone, Debug)]
pub(crate) struct Row {
    bytes: Bytes,
    /// The place of each value; `None` for `NULL`.
    values: Vec<Option<Range<usize>>>,
}

impl Row {
    pub(super) fn read(body: &DataRowBody) -> io::Result<Self> {
        Ok(Self {
            bytes: body.buffer_bytes().clone(),
            values: body.ranges().collect()?,
        })
    }

    /// The value of a column; `None` for `NULL`, and if there is no such column.
    pub(crate) fn text(&self, column: usize) -> Option<&str> {
        let range = self.values.get(column)?.clone()?;
        std::str::from_utf8(self.bytes.get(range)?).ok()
    }

    /// The value of the last column.
    pub(crate) fn last(&self) -> Option<&str> {
        self.text(self.values.len().checked_sub(1)?)
    }

    /// The same as a number.
    pub(crate) fn number<N: FromStr>(&self, column: usize) -> Option<N> {
        self.text(column)?.parse().ok()
    }

    /// The same as a truth value.
    pub(crate) fn truth(&self, column: usize) -> Option<bool> {
        match self.text(column)? {
            "t" => Some(true),
            "f" => Some(false),
            _ => None,
        }
    }
}

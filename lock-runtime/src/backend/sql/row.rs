//! One row of an answer, whose values are text.

use std::ops::Range;
use std::str::FromStr;

use bytes::Bytes;

#[derive(Clone, Debug)]
pub(crate) struct Row {
    bytes: Bytes,
    /// The place of each value; `None` for `NULL`.
    values: Vec<Option<Range<usize>>>,
}

impl Row {
    pub(crate) fn new(bytes: Bytes, values: Vec<Option<Range<usize>>>) -> Self {
        Self { bytes, values }
    }

    /// How much memory it takes.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + size_of_val(&self.values[..])
    }

    /// The value of a column; `None` for `NULL`, and if there is no such column.
    pub(crate) fn text(&self, column: usize) -> Option<&str> {
        let range = self.values.get(column)?.clone()?;
        std::str::from_utf8(self.bytes.get(range)?).ok()
    }

    /// The value of the last column.
    #[cfg(feature = "postgres")]
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
            "t" | "1" => Some(true),
            "f" | "0" => Some(false),
            _ => None,
        }
    }
}

//! Reads the parts of a payload.

use std::io;

use super::packet::strange;

/// What is left of a payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest<'a>(pub(crate) &'a [u8]);

impl<'a> Rest<'a> {
    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The next bytes, so many.
    pub(crate) fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(strange)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn byte(&mut self) -> io::Result<u8> {
        self.take(1).map(|it| it[0])
    }

    /// A number whose least significant byte comes first.
    pub(crate) fn number(&mut self, bytes: usize) -> io::Result<u64> {
        let bytes = self.take(bytes)?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |sum, it| sum << 8 | u64::from(*it)))
    }

    /// The bytes before the next NUL, or all.
    pub(crate) fn until_nul(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|it| *it == 0);
        let (taken, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest.get(1..).unwrap_or_default();
        taken
    }

    /// A number whose first byte says how long it is; `None` for the mark of `NULL`.
    pub(crate) fn length(&mut self) -> io::Result<Option<u64>> {
        Ok(Some(match self.byte()? {
            0xfb => return Ok(None),
            0xfc => self.number(2)?,
            0xfd => self.number(3)?,
            0xfe => self.number(8)?,
            0xff => return Err(strange()),
            small => small.into(),
        }))
    }
}

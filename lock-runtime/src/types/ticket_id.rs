//! What a store knows a ticket by.

use std::fmt;

#[cfg(not(test))]
use getrandom::fill;

/// 128 bits from the operating system. Each claim has room for one, hence no more alignment than its other fields need.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(Rust, packed(8))]
pub(crate) struct TicketId(pub(crate) u128);

impl TicketId {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        fill(&mut bytes)?;
        Ok(Self(u128::from_be_bytes(bytes)))
    }

    /// Who looks at the lock does not get the secret.
    pub(crate) fn shown(self) -> String {
        let mut digits = self.to_string();
        digits.truncate(8);
        digits
    }
}

/// A simulation shows the same again when it gets the same seed.
#[cfg(test)]
#[allow(clippy::unnecessary_wraps, reason = "the operating system may fail")]
fn fill(bytes: &mut [u8]) -> Result<(), getrandom::Error> {
    fastrand::fill(bytes);
    Ok(())
}

impl fmt::Display for TicketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", { self.0 })
    }
}

impl fmt::Debug for TicketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

//! Tokens: random numbers that tell acquisitions apart.

use std::fmt;

#[cfg(not(test))]
use getrandom::fill;

#[cfg(feature = "zookeeper")]
use crate::types::ticket_id::TicketId;

/// Identifies one acquisition in a store: 128 bits from the operating system, so
/// that no two are ever the same. Each is in a queue at most once. Each claim has one, hence no more alignment than its
/// other fields need.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(Rust, packed(8))]
pub(crate) struct Token(u128);

impl Token {
    /// A fresh token.
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        fill(&mut bytes)?;
        Ok(Self(u128::from_be_bytes(bytes)))
    }

    /// The number itself.
    pub(crate) fn number(self) -> u128 {
        self.0
    }

    /// One of the tokens that begin alike: those of one acquisition.
    pub(crate) fn sibling(self) -> Self {
        let last = self.0.wrapping_add(1) & u128::from(u32::MAX);
        Self(((self.0 >> 32) << 32) | last)
    }

    /// The common part of the siblings of the token with this name; the whole name of a foreign
    /// client.
    #[cfg(feature = "redis")]
    pub(crate) fn family(name: &str) -> &str {
        Self::parse(name).map_or(name, |_| &name[..24])
    }

    /// What stands in place of a token while a ticket keeps a lock closed.
    #[cfg(feature = "zookeeper")]
    pub(crate) fn of_ticket(ticket: TicketId) -> Self {
        Self(ticket.0)
    }

    /// The token that a name begins with.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let digits = name.split(' ').next().filter(|it| it.len() == 32)?;
        u128::from_str_radix(digits, 16).ok().map(Self)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", { self.0 })
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Makes tokens from random bytes, which it fetches for many tokens at once.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    fetched: Vec<u8>,
}

impl Tokens {
    const AT_ONCE: usize = 64;

    pub(crate) fn next(&mut self) -> Result<Token, getrandom::Error> {
        if self.fetched.is_empty() {
            let mut bytes = vec![0; 16 * Self::AT_ONCE];
            fill(&mut bytes)?;
            self.fetched = bytes;
        }
        let rest = self.fetched.len() - 16;
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.fetched[rest..]);
        self.fetched.truncate(rest);
        Ok(Token(u128::from_be_bytes(bytes)))
    }

    /// Forgets the bytes that were fetched. Two copies of a running machine would both
    /// use them; but both have to connect again, and forget them then.
    pub(crate) fn forget(&mut self) {
        self.fetched.clear();
    }
}

/// A simulation shows the same again when it gets the same seed.
#[cfg(test)]
#[allow(clippy::unnecessary_wraps, reason = "the operating system may fail")]
fn fill(bytes: &mut [u8]) -> Result<(), getrandom::Error> {
    fastrand::fill(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn tokens_do_not_repeat() {
        let mut tokens = Tokens::default();
        let mut seen = HashSet::new();
        for turn in 0..1_000 {
            let token = tokens.next().expect("random numbers");
            assert!(seen.insert(token), "{token}");
            assert_eq!(Token::parse(&format!("{token} somebody")), Some(token));
            if turn % 100 == 0 {
                tokens.forget();
            }
        }
    }
}

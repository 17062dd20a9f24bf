//! The name under which a server knows one connection of ours and its successors.

use crate::backend::token::Token;

/// Waiters, notifications and the bell of a connection belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Session(Token);

impl Session {
    /// One that no server knows.
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        Token::new().map(Self)
    }

    /// That of a token.
    #[cfg(test)]
    pub(crate) fn of(token: Token) -> Self {
        Self(token)
    }

    /// As an argument of calls.
    pub(crate) fn token(self) -> Token {
        self.0
    }
}

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

    /// As an argument of calls.
    pub(crate) fn token(self) -> Token {
        self.0
    }

    /// The channel of its notifications, which needs no quotes.
    pub(crate) fn channel(self) -> String {
        format!("lock_runtime_{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_a_channel_of_its_own() {
        let token = Token::parse("00112233445566778899aabbccddeeff").expect("a token");
        let expected = "lock_runtime_00112233445566778899aabbccddeeff";
        assert_eq!(Session(token).channel(), expected);
    }
}

//! Where a session is notified.

use crate::backend::sql::session::Session;

/// The channel of a session, which needs no quotes.
pub(crate) fn channel(session: Session) -> String {
    format!("lock_runtime_{}", session.token())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::token::Token;

    #[test]
    fn a_session_has_a_channel_of_its_own() {
        let token = Token::parse("00112233445566778899aabbccddeeff").expect("a token");
        let expected = "lock_runtime_00112233445566778899aabbccddeeff";
        assert_eq!(channel(Session::of(token)), expected);
    }
}

//! Errors of a server, and what each means for the call that it answers.

use std::fmt;
use std::io;
use std::sync::Arc;

use super::bytes::Rest;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::sql::trouble::{Means, Refused, Trouble as ConnectTrouble};
use crate::types::error::Cause;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerError {
    pub(crate) code: u16,
    /// The SQLSTATE.
    state: Box<str>,
    message: Box<str>,
}

/// The meaning of an error for the call that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The server has undone what it did. The same call can be sent again at once.
    NotRun,
    /// The server cannot carry it out at the moment, and has done nothing.
    NotNow,
    /// The server has done nothing, and will carry it out once an operator has changed something.
    Never,
}

const ROW_KEPT: u16 = 1205;
const DEADLOCK: u16 = 1213;

impl ServerError {
    /// Reads what follows the mark of an error.
    pub(crate) fn read(mut rest: Rest<'_>) -> io::Result<Self> {
        let code = u16::try_from(rest.number(2)?).unwrap_or(0);
        let mut state = "HY000".into();
        if let Some(after) = rest.0.strip_prefix(b"#") {
            rest = Rest(after);
            state = String::from_utf8_lossy(rest.take(5)?).into();
        }
        Ok(Self {
            code,
            state,
            message: String::from_utf8_lossy(rest.0).into(),
        })
    }

    pub(crate) fn meaning(&self) -> Meaning {
        match self.code {
            DEADLOCK => Meaning::NotRun,
            // A procedure or a table that is missing may be on its way: an upgrade makes procedures anew.
            1146 | 1305 => Meaning::NotNow,
            // No access, no such database, a syntax error, a packet larger than the server takes, data that does not fit, a wrong
            // number of arguments, no owner of the procedures, a password that has expired, a locked account.
            1044 | 1045 | 1049 | 1064 | 1142 | 1143 | 1153 | 1227 | 1264 | 1318 | 1370 | 1406
            | 1449 | 1698 | 1820 | 1862 | 3118 | 4151 => Meaning::Never,
            _ => match self.state.get(..2) {
                Some("22" | "28") => Meaning::Never,
                _ => Meaning::NotNow,
            },
        }
    }

    /// Whether it has waited for a row that somebody keeps.
    pub(crate) fn has_waited(&self) -> bool {
        self.code == ROW_KEPT
    }

    /// Whether the server has changed since the connection opened: it only reads, as a replica does. It may have committed
    /// the call.
    pub(crate) fn is_of_another_server(&self) -> bool {
        matches!(self.code, 1290 | 1792 | 1836)
    }

    /// Whether the server has broken off a statement, or lacks memory for it. No handler runs then, so that the procedure
    /// cannot undo what it has done: the end of the connection does.
    pub(crate) fn is_interruption(&self) -> bool {
        matches!(self.code, 1037 | 1038 | 1041 | 1317 | 1436 | 1969 | 3024)
    }

    /// Whether nobody may log in as this user with this password.
    pub(crate) fn is_wrong_login(&self) -> bool {
        matches!(self.code, 1045 | 1698)
    }

    /// Whether the procedure or the table that was asked for does not exist.
    pub(crate) fn is_not_there(&self) -> bool {
        matches!(self.code, 1146 | 1305)
    }

    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self.code, 1044 | 1142 | 1143 | 1227 | 1370)
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (error {})", self.message, self.code)
    }
}

impl std::error::Error for ServerError {}

/// Why a call has no reply.
impl From<ServerError> for Trouble {
    fn from(error: ServerError) -> Self {
        let (meaning, is_doubtful) = (error.meaning(), error.is_of_another_server());
        let cause: Cause = Arc::new(error);
        match meaning {
            _ if is_doubtful => Self::Unknown(cause),
            Meaning::NotRun => Self::NotRun,
            Meaning::NotNow => Self::NotNow(cause),
            Meaning::Never => Self::Never(cause),
        }
    }
}

/// What it means for an attempt to connect.
impl From<ServerError> for Refused {
    fn from(error: ServerError) -> Self {
        let means = match error.meaning() {
            Meaning::NotNow | Meaning::NotRun => Means::NotNow,
            Meaning::Never if error.code == 1049 => Means::Invalid("url"),
            Meaning::Never => Means::Never,
        };
        let is_wrong_login = error.is_wrong_login();
        Self::new(Arc::new(error), means, is_wrong_login)
    }
}

impl From<ServerError> for ConnectTrouble {
    fn from(error: ServerError) -> Self {
        Refused::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_says_whether_to_try_again() {
        for (codes, meaning) in [
            (&[1213][..], Meaning::NotRun),
            (
                &[1040, 1053, 1146, 1205, 1290, 1305, 1317, 1836],
                Meaning::NotNow,
            ),
            (
                &[1044, 1045, 1049, 1064, 1142, 1153, 1370, 1406, 1449, 3118],
                Meaning::Never,
            ),
        ] {
            for code in codes {
                let error = ServerError {
                    code: *code,
                    state: "HY000".into(),
                    message: "no".into(),
                };
                assert_eq!(error.meaning(), meaning, "{error}");
            }
        }
    }

    #[test]
    fn a_server_that_has_become_a_replica_may_have_carried_out_a_call() {
        for (code, is_doubtful) in [(1205, false), (1290, true), (1836, true)] {
            let error = ServerError {
                code,
                state: "HY000".into(),
                message: "no".into(),
            };
            let trouble = Trouble::from(error);
            assert_eq!(matches!(trouble, Trouble::Unknown(_)), is_doubtful);
        }
    }

    #[test]
    fn an_error_reads_with_its_state_or_without() {
        let read = |bytes| ServerError::read(Rest(bytes)).expect("an error");
        let error = read(b"\xbd\x04#40001Deadlock");
        assert_eq!((error.code, &*error.state), (1213, "40001"));
        assert_eq!(error.to_string(), "Deadlock (error 1213)");
        assert_eq!(&*read(b"\x10\x04Too many").message, "Too many");
    }
}

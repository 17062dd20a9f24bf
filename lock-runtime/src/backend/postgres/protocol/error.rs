//! Errors and warnings of the server, and what an error means for the call.

use std::fmt;
use std::io;
use std::sync::Arc;

use fallible_iterator::FallibleIterator as _;
use postgres_protocol::message::backend::ErrorFields;

use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::sql::trouble::{Means, Refused, Trouble as ConnectTrouble};
use crate::types::error::Cause;

/// An error, or a warning beside an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerError {
    severity: Box<str>,
    /// The SQLSTATE.
    pub(crate) code: Box<str>,
    pub(crate) message: Box<str>,
    /// The function of the server that reports it, whatever the language of the message.
    routine: Box<str>,
}

/// The meaning of an error for the call that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The server has forgotten the prepared statement, and has done nothing. The same call can
    /// be sent again at once.
    NotRun,
    /// The server cannot carry it out at the moment, and has done nothing.
    NotNow,
    /// The server has done nothing, and will carry it out once an operator has changed something.
    Never,
}

impl ServerError {
    pub(crate) fn read(mut fields: ErrorFields<'_>) -> io::Result<Self> {
        let mut this = Self {
            severity: "ERROR".into(),
            code: "".into(),
            message: "".into(),
            routine: "".into(),
        };
        while let Some(field) = fields.next()? {
            let text = String::from_utf8_lossy(field.value_bytes());
            match field.type_() {
                // The severity that is not translated.
                b'V' => this.severity = text.into(),
                b'C' => this.code = text.into(),
                b'M' => this.message = text.into(),
                b'R' => this.routine = text.into(),
                _ => {}
            }
        }
        Ok(this)
    }

    pub(crate) fn meaning(&self) -> Meaning {
        match &*self.code {
            "26000" => Meaning::NotRun,
            "0A000" if self.message.contains("cached plan") => Meaning::NotRun,
            code => match code.get(..2) {
                // Not allowed, not there, not understood.
                Some("0A" | "22" | "28" | "3D" | "3F" | "42") => Meaning::Never,
                _ => Meaning::NotNow,
            },
        }
    }

    /// Whether it has waited for a lock of the database, which somebody keeps.
    pub(crate) fn has_waited(&self) -> bool {
        &*self.code == "55P03"
    }

    /// Whether the server has changed since the connection opened: it only reads, as a standby
    /// does, or waits for other standbys.
    pub(crate) fn is_of_another_server(&self) -> bool {
        matches!(&*self.code, "25006" | "LR004")
    }

    /// Whether nobody may log in as this user with this password.
    pub(crate) fn is_wrong_login(&self) -> bool {
        self.code.starts_with("28")
    }

    /// Whether the function, table or schema that was asked for does not exist.
    pub(crate) fn is_not_there(&self) -> bool {
        matches!(&*self.code, "42883" | "42P01" | "3F000")
    }

    pub(crate) fn is_forbidden(&self) -> bool {
        &*self.code == "42501"
    }

    /// Whether the connection ends with it. The outcome of the call is unknown then.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(&*self.severity, "FATAL" | "PANIC")
    }

    /// Whether the success beside it may not be one: the wait for a synchronous standby may have been cancelled.
    pub(super) fn casts_doubt(&self) -> bool {
        // Long before transaction IDs run out, the server warns of that with each one that it gives out.
        let is_of_ids = matches!(&*self.routine, "GetNewTransactionId" | "GetNewMultiXactId");
        &*self.severity == "WARNING" && !is_of_ids
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.message, self.code)
    }
}

impl std::error::Error for ServerError {}

/// Why a call has no reply.
impl From<ServerError> for Trouble {
    fn from(error: ServerError) -> Self {
        let (is_fatal, meaning) = (error.is_fatal(), error.meaning());
        let cause: Cause = Arc::new(error);
        match meaning {
            _ if is_fatal => Self::Unknown(cause),
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
            Meaning::Never if &*error.code == "3D000" => Means::Invalid("url"),
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
            ("26000", Meaning::NotRun),
            (
                "08006 53100 53300 57P01 57P02 57P03 57P05 57014 55P03 40001 40P01 25006 XX000",
                Meaning::NotNow,
            ),
            ("28000 28P01 3D000 42501 3F000 42883 22021", Meaning::Never),
        ] {
            for code in codes.split(' ') {
                let error = ServerError {
                    severity: "ERROR".into(),
                    code: code.into(),
                    message: "no".into(),
                    routine: "".into(),
                };
                assert_eq!(error.meaning(), meaning, "{error}");
            }
        }
    }
}

//! The reasons why there is no reply, as values.

use std::sync::Arc;

use crate::types::error::Cause;

/// Why there is no reply.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// The server did not know the script and has done nothing.
    NotRun,
    /// It cannot serve at the moment.
    NotNow(Cause),
    /// It will not serve until somebody changes something.
    Never(Cause),
    /// The connection ended before the answer: the call may have been carried out or not.
    Unknown(Cause),
}

impl Trouble {
    /// A lasting one, in our own words.
    pub(crate) fn never(text: &str) -> Self {
        Self::Never(Arc::new(ServerSaid(text.to_owned())))
    }

    /// A passing one, in our own words.
    pub(crate) fn not_now(text: &str) -> Self {
        Self::NotNow(Arc::new(ServerSaid(text.to_owned())))
    }

    pub(crate) fn cause(&self) -> Cause {
        match self {
            Self::NotRun => Arc::new(ServerSaid("the server has forgotten the script".into())),
            Self::NotNow(cause) | Self::Never(cause) | Self::Unknown(cause) => Arc::clone(cause),
        }
    }
}

impl From<Trouble> for Cause {
    fn from(trouble: Trouble) -> Self {
        trouble.cause()
    }
}

/// An error reply, or what happened to the connection, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ServerSaid(pub(crate) String);

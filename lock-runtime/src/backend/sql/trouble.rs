//! Why an attempt to connect has failed.

use std::io;
use std::sync::Arc;

use crate::backend::transport::distrust::Distrust;
use crate::backend::transport::ready::connect_failed;
use crate::types::error::{Cause, LockError};

#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// Another attempt may succeed, or another server.
    NotNow(Cause),
    /// No attempt succeeds until an operator changes something.
    Never(Cause),
    /// The same, and this setting is wrong.
    Invalid(&'static str, Cause),
}

/// A defect of a server that answers, in our own words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unfit(String);

/// An error of a server, and what it means for the attempt.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{cause}")]
pub(crate) struct Refused {
    cause: Cause,
    means: Means,
    /// Whether it does not accept the password, which may be out of date.
    is_wrong_login: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    NotNow,
    Never,
    /// This setting is wrong.
    Invalid(&'static str),
}

impl Refused {
    pub(crate) fn new(cause: Cause, means: Means, is_wrong_login: bool) -> Self {
        Self {
            cause,
            means,
            is_wrong_login,
        }
    }
}

impl From<Refused> for Trouble {
    fn from(refused: Refused) -> Self {
        match refused.means {
            Means::NotNow => Self::NotNow(Arc::new(refused)),
            Means::Never => Self::Never(Arc::new(refused)),
            Means::Invalid(setting) => Self::Invalid(setting, Arc::new(refused)),
        }
    }
}

impl Trouble {
    /// A passing trouble with a server that answers.
    pub(crate) fn not_now(why: impl Into<String>) -> Self {
        Self::NotNow(Arc::new(Unfit(why.into())))
    }

    pub(crate) fn never(why: impl Into<String>) -> Self {
        Self::Never(Arc::new(Unfit(why.into())))
    }

    pub(crate) fn invalid(setting: &'static str, why: impl Into<String>) -> Self {
        Self::Invalid(setting, Arc::new(Unfit(why.into())))
    }

    pub(crate) fn cause(&self) -> Cause {
        match self {
            Self::NotNow(cause) | Self::Never(cause) | Self::Invalid(_, cause) => Arc::clone(cause),
        }
    }

    /// Whether the server has answered, and does not serve.
    pub(crate) fn is_refusal(&self) -> bool {
        let cause = self.cause();
        cause.is::<Unfit>() || cause.is::<Refused>()
    }

    /// Whether the server does not accept the password, which may be out of date.
    pub(crate) fn is_wrong_login(&self) -> bool {
        let cause = self.cause();
        let refused = cause.downcast_ref::<Refused>();
        refused.is_some_and(|it| it.is_wrong_login)
    }

    /// Names the server that it is about, where there are several.
    pub(crate) fn at(self, server: &str) -> Self {
        let name = |cause: Cause| -> Cause { Arc::new(Unfit(format!("{server}: {cause}"))) };
        match self {
            Self::NotNow(cause) if cause.is::<io::Error>() => {
                Self::NotNow(Arc::new(io::Error::other(format!("{server}: {cause}"))))
            }
            Self::NotNow(cause) => Self::NotNow(name(cause)),
            Self::Never(cause) if cause.is::<Distrust>() => Self::Never(cause),
            Self::Never(cause) => Self::Never(name(cause)),
            Self::Invalid(setting, cause) => Self::Invalid(setting, name(cause)),
        }
    }

    /// The error of a manager that cannot connect.
    pub(crate) fn into_error(self, server: &Arc<str>) -> LockError {
        match self {
            Self::Invalid(setting, cause) => LockError::invalid(setting, cause),
            Self::NotNow(cause) | Self::Never(cause) => connect_failed(server, cause),
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        if let Some(refused) = error.get_ref().and_then(|it| it.downcast_ref::<Refused>()) {
            return refused.clone().into();
        }
        match Distrust::find(&error) {
            Some(distrust) => Self::Never(Arc::new(distrust)),
            None => Self::NotNow(Arc::new(error)),
        }
    }
}

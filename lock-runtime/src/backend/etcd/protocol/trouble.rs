//! Why a call has no answer, and what that says about its effect.

use std::sync::Arc;

use crate::types::error::Cause;

#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// Nothing was done; it may be asked again.
    NotNow(Cause),
    /// It may have been done.
    Unknown(Cause),
    /// There is no space. It may have been done: a member notices after the write that has used up its space.
    NoSpace(Cause),
    /// Nothing was done, and asking again does not help.
    Never(Cause),
    /// The lease has ended.
    NoLease(Cause),
    /// The member wants a new login; nothing was done.
    LoggedOut(Cause),
}

/// An error of etcd or of the connection.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Said(String);

impl Trouble {
    /// Something that lies in the way for now.
    pub(crate) fn said(text: impl Into<String>) -> Self {
        Self::NotNow(cause(text))
    }

    pub(crate) fn unknown(text: impl Into<String>) -> Self {
        Self::Unknown(cause(text))
    }

    /// Reads the status that ended a call, one of the codes of gRPC.
    pub(crate) fn of_status(code: u32, message: &str) -> Self {
        let message = message.strip_prefix("etcdserver: ").unwrap_or(message);
        let cause = cause(format!("etcd said: {message}"));
        match code {
            5 if message.contains("lease") => Self::NoLease(cause),
            8 if message.contains("database space exceeded") => Self::NoSpace(cause),
            8 => Self::NotNow(cause),
            // It serves once it votes.
            9 if message.contains("not supported for learner") => Self::NotNow(cause),
            16 => Self::LoggedOut(cause),
            3 if message.contains("revision of auth store is old") => Self::LoggedOut(cause),
            1 | 2 | 4 | 10 | 13 | 14 | 15 => Self::Unknown(cause),
            _ => Self::Never(cause),
        }
    }

    /// The same for a connection with a login. If the member misses one, users were introduced since: the login said
    /// that there are none.
    pub(crate) fn despite_login(self) -> Self {
        match self {
            Self::Never(cause) if cause.to_string().contains("user name is empty") => {
                Self::LoggedOut(cause)
            }
            other => other,
        }
    }

    /// Whether a member takes fewer operations in one transaction.
    pub(crate) fn is_of_size(&self) -> bool {
        matches!(self, Self::Never(cause) if cause.to_string().contains("too many operations"))
    }

    pub(crate) fn cause(&self) -> Cause {
        match self {
            Self::NotNow(cause)
            | Self::Unknown(cause)
            | Self::NoSpace(cause)
            | Self::Never(cause)
            | Self::NoLease(cause)
            | Self::LoggedOut(cause) => Arc::clone(cause),
        }
    }
}

impl From<Trouble> for Cause {
    fn from(trouble: Trouble) -> Self {
        trouble.cause()
    }
}

pub(crate) fn cause(text: impl Into<String>) -> Cause {
    Arc::new(Said(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_whether_the_call_may_have_been_done() {
        let of = |code, message| Trouble::of_status(code, message);
        let no_lease = of(5, "etcdserver: requested lease not found");
        assert!(matches!(no_lease, Trouble::NoLease(_)));
        assert!(matches!(
            of(14, "etcdserver: request timed out"),
            Trouble::Unknown(_)
        ));
        assert!(matches!(
            of(8, "etcdserver: mvcc: database space exceeded"),
            Trouble::NoSpace(_)
        ));
        assert!(matches!(
            of(8, "etcdserver: too many requests"),
            Trouble::NotNow(_)
        ));
        let learner = "etcdserver: rpc not supported for learner";
        assert!(matches!(of(9, learner), Trouble::NotNow(_)));
        let denied = of(7, "etcdserver: permission denied");
        assert_eq!(denied.cause().to_string(), "etcd said: permission denied");
        assert!(matches!(denied, Trouble::Never(_)));
        let large = of(3, "etcdserver: too many operations in txn request");
        assert!(large.is_of_size() && matches!(large, Trouble::Never(_)));
        assert!(!of(3, "etcdserver: duplicate key given in txn request").is_of_size());
        for (code, message) in [
            (16, "etcdserver: invalid auth token"),
            (3, "etcdserver: revision of auth store is old"),
        ] {
            assert!(matches!(of(code, message), Trouble::LoggedOut(_)));
        }
        let nobody = of(3, "etcdserver: user name is empty");
        assert!(matches!(nobody, Trouble::Never(_)));
        assert!(matches!(nobody.despite_login(), Trouble::LoggedOut(_)));
        assert!(matches!(denied.despite_login(), Trouble::Never(_)));
    }
}

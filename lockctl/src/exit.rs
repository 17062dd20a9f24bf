//! How `lockctl` ends: one exit code for each outcome, and the failures behind them.

use std::io;
use std::process::ExitCode;

use lock_runtime::LockError;

/// The end of a command.
pub(crate) type Done = Result<Exit, Failure>;

/// An outcome, with an exit code of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    /// Something that has no code of its own went wrong.
    Failed,
    /// Invalid arguments.
    Usage,
    /// `status`, `release`: nobody holds the lock; `log`, `last`: no grant is remembered.
    Free,
    /// `doctor`: a promise is weaker than it could be. `graph`: some holders or servers do not answer.
    Warnings,
    /// `doctor`: a promise does not hold. `graph`: holders wait for each other.
    Errors,
    /// The store cannot be asked.
    Unavailable,
    /// `run`: the lock was lost, or `--max-hold` was over, before the command had ended.
    Lost,
    /// `run`: the lock stayed held or cooling down until the wait was over, or the queue was full.
    Contended,
    /// `run --skip`: the lock is held or cooling down.
    Skipped,
    /// `release`: the user said no, or could not be asked.
    Refused,
    /// `run`: the command's own code, or 128 and the number of the signal that ended it.
    Command(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Free => 10,
            Exit::Warnings => 20,
            Exit::Errors => 21,
            Exit::Unavailable => 69,
            Exit::Lost => 73,
            Exit::Contended => 74,
            Exit::Skipped => 75,
            Exit::Refused => 76,
            Exit::Command(code) => code,
        })
    }
}

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("the output cannot be written: {0}")]
    Output(#[from] io::Error),
    #[error("{what}: {error}")]
    System { what: String, error: io::Error },
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Refused(String),
}

impl Failure {
    /// The system refused to do something.
    pub(crate) fn system(what: impl Into<String>, error: impl Into<io::Error>) -> Self {
        let (what, error) = (what.into(), error.into());
        Self::System { what, error }
    }

    /// What went wrong, in one word that stays the same.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Lock(error) => error.kind(),
            Self::Output(_) => "output",
            Self::System { .. } => "system",
            Self::Usage(_) => "usage",
            Self::Refused(_) => "refused",
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Lock(LockError::Contended { .. }) => Exit::Contended,
            Self::Lock(LockError::Unavailable { .. }) => Exit::Unavailable,
            Self::Lock(LockError::Lost { .. }) => Exit::Lost,
            Self::Lock(LockError::InvalidOptions { .. } | LockError::InvalidKey { .. })
            | Self::Usage(_) => Exit::Usage,
            Self::Refused(_) => Exit::Refused,
            Self::Lock(_) | Self::Output(_) | Self::System { .. } => Exit::Failed,
        }
    }
}

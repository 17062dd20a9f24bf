//! Calls: a statement with its arguments in it, which is a transaction of its own.

use std::fmt::Write as _;
use std::time::Duration;

use super::arg::Arg;

/// For how long the server lets a call wait for a row that another transaction has, before it answers with an error. It
/// counts in whole seconds.
pub(crate) const ROW_WAIT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) text: String,
    /// Whether it calls a procedure, whose rows end with a word of their own.
    pub(crate) is_procedure: bool,
    /// How long the server may be silent before the connection counts as broken.
    pub(crate) timeout: Duration,
}

impl Call {
    /// Calls a procedure of ours.
    pub(crate) fn procedure(name: &str, args: &[Arg], timeout: Duration) -> Self {
        let mut text = format!("CALL lock_runtime_{name}(");
        for (number, arg) in args.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            // Writing into a text does not fail.
            let _ = write!(text, "{comma}{arg}");
        }
        text.push(')');
        Self {
            text,
            is_procedure: true,
            timeout: beyond_rows(timeout),
        }
    }

    /// Any other statement.
    pub(crate) fn statement(text: impl Into<String>, timeout: Duration) -> Self {
        Self {
            text: text.into(),
            is_procedure: false,
            timeout: beyond_rows(timeout),
        }
    }
}

/// A server that waits for a row is not silent, unless the lease is too short to find out.
fn beyond_rows(timeout: Duration) -> Duration {
    if timeout < ROW_WAIT {
        timeout
    } else {
        timeout + ROW_WAIT / 2
    }
}

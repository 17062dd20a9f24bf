//! Calls: a statement with its arguments in it, which is a transaction of its own.

use std::fmt::Write as _;
use std::time::Duration;

use super::arg::Arg;
use crate::backend::sql::time_limit::beyond_rows;

/// The server lets a call wait for a row that another transaction has for a second, as long as the longest time limit, before
/// it answers with an error. It counts in whole seconds.
const BEYOND: Duration = Duration::from_millis(500);

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
            timeout: beyond_rows(timeout, BEYOND),
        }
    }

    /// Any other statement.
    pub(crate) fn statement(text: impl Into<String>, timeout: Duration) -> Self {
        Self {
            text: text.into(),
            is_procedure: false,
            timeout: beyond_rows(timeout, BEYOND),
        }
    }
}

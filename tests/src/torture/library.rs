//! Whose locks the processes of a torture take, if all libraries are to have the same work: this project's or another
//! library's, on one server of Redis.

use std::{path::Path, time::Duration};

use super::{LONG, SHORT};
use crate::{Worker, node, python};

/// A library of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// This project's.
    Ours,
    /// `Lock` of redis-py.
    RedisPy,
    /// Node's `redlock`.
    Redlock,
}

impl Library {
    /// All of them, by their names in the table.
    pub const ALL: [(&str, Self); 3] = [
        ("**lock-runtime**", Self::Ours),
        ("redis-py", Self::RedisPy),
        ("redlock (Node)", Self::Redlock),
    ];

    /// Whether it can be run here; if not, a notice says so.
    pub fn is_installed(self) -> bool {
        match self {
            Self::Ours => true,
            Self::RedisPy => Worker::has_python("torture of redis-py"),
            Self::Redlock => Worker::has_node("torture of Node's redlock"),
        }
    }

    /// The command of a process; `program` is the one of which `program work …` is a process with this project's locks.
    pub(super) fn command(
        self,
        program: &str,
        url: &str,
        directory: &Path,
        ttl: Duration,
    ) -> Vec<String> {
        let command = match self {
            Self::Ours => vec![program.to_owned(), "work".to_owned()],
            Self::RedisPy => python::command("torture.py").into(),
            Self::Redlock => node::command("torture.js").into(),
        };
        let directory = directory.to_string_lossy().into_owned();
        let numbers = [ttl.as_millis(), LONG as u128, SHORT as u128].map(|it| it.to_string());
        let args = [url.to_owned(), directory].into_iter().chain(numbers);
        command.into_iter().chain(args).collect()
    }
}

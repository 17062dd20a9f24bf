//! Whose locks the processes of a torture take, if all libraries are to have the same work: this project's or another
//! library's.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{LONG, SHORT, Servers};
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
    /// A crate, which `tests/peers` runs by this name.
    Crate(&'static str),
}

impl Library {
    /// All of them, by their names in the table, and whose locks they take.
    pub const ALL: [(&str, Self, Servers); 11] = [
        ("**lock-runtime**", Self::Ours, Servers::Redis),
        ("rslock", Self::Crate("rslock"), Servers::Redis),
        ("rlock", Self::Crate("rlock"), Servers::Redis),
        (
            "async-redis-lock",
            Self::Crate("async-redis-lock"),
            Servers::Redis,
        ),
        (
            "distributed-lock",
            Self::Crate("distributed-lock"),
            Servers::Redis,
        ),
        ("redis-py", Self::RedisPy, Servers::Redis),
        ("redlock (Node)", Self::Redlock, Servers::Redis),
        ("**lock-runtime**, etcd", Self::Ours, Servers::Etcd),
        ("etcd-client", Self::Crate("etcd-client"), Servers::Etcd),
        (
            "**lock-runtime**, ZooKeeper",
            Self::Ours,
            Servers::ZooKeeper,
        ),
        (
            "zookeeper-client",
            Self::Crate("zookeeper-client"),
            Servers::ZooKeeper,
        ),
    ];

    /// Whether it can be run here; if not, a notice says so.
    pub fn is_installed(self) -> bool {
        match self {
            Self::Ours => true,
            Self::RedisPy => Worker::has_python("torture of redis-py"),
            Self::Redlock => Worker::has_node("torture of Node's redlock"),
            Self::Crate(name) => {
                let is_built = peers().is_file();
                if !is_built {
                    eprintln!("NOTICE: torture of {name} is left out: tests/peers is not built");
                }
                is_built
            }
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
            Self::Crate(name) => {
                vec![peers().to_string_lossy().into_owned(), name.to_owned()]
            }
        };
        let directory = directory.to_string_lossy().into_owned();
        let numbers = [ttl.as_millis(), LONG as u128, SHORT as u128].map(|it| it.to_string());
        let args = [url.to_owned(), directory].into_iter().chain(numbers);
        command.into_iter().chain(args).collect()
    }
}

/// Where `make torture-peers` builds the program of `tests/peers`.
fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/peers/debug/torture-worker")
}

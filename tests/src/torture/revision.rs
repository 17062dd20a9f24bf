//! Which commit a soak tests, and on which day: the last change to the part of the runtime that a store uses.

use std::{io, process::Command};

use super::Servers::{
    self, Cluster, Etcd, Mysql, Postgres, Redis, Redlock, Sentinel, Setnx, ZooKeeper,
};
use crate::documents::repository::root;

/// The runtime.
const RUNTIME: &str = "lock-runtime";
/// The part of the runtime that only its unit tests run.
const SIMULATION: &str = "lock-runtime/src/simulation";
/// The folders of the runtime's backends, and all stores that run them.
const BACKENDS: [(&str, &[Servers]); 12] = [
    ("memory", &[]),
    (
        "queue",
        &[Redis, Setnx, Sentinel, Cluster, Redlock, Postgres, Mysql],
    ),
    ("redis", &[Redis, Setnx, Sentinel, Cluster, Redlock]),
    ("redis/lua/setnx", &[Setnx]),
    ("redis/sentinel", &[Sentinel]),
    ("redis/cluster", &[Cluster]),
    ("redis/redlock", &[Redlock]),
    ("zookeeper", &[ZooKeeper]),
    ("etcd", &[Etcd]),
    ("sql", &[Postgres, Mysql]),
    ("postgres", &[Postgres]),
    ("mysql", &[Mysql]),
];

/// The last commit that changed what runs on these servers, with a mark if there are further changes.
///
/// # Errors
///
/// Git cannot be run.
pub fn revision(servers: Servers) -> io::Result<String> {
    let paths = paths(servers);
    let changes = git(&["status", "--porcelain", "--"], &paths)?;
    let mark = if changes.is_empty() { "" } else { "+" };
    Ok(git(&["log", "-1", "--format=%h", "--"], &paths)? + mark)
}

/// The day of the host's clock.
///
/// # Errors
///
/// The program `date` cannot be run.
pub fn today() -> io::Result<String> {
    said_by(Command::new("date").args(["-u", "+%F"]))
}

/// The runtime without the backends of other stores and its simulation.
fn paths(servers: Servers) -> Vec<String> {
    let others = BACKENDS.iter().filter(|(_, own)| !own.contains(&servers));
    let others = others.map(|(folder, _)| path(folder));
    let excluded = others.chain([SIMULATION.to_owned()]);
    let excluded = excluded.map(|path| format!(":(exclude){path}"));
    [RUNTIME.to_owned()].into_iter().chain(excluded).collect()
}

fn path(folder: &str) -> String {
    format!("{RUNTIME}/src/backend/{folder}")
}

fn git(arguments: &[&str], paths: &[String]) -> io::Result<String> {
    said_by(
        Command::new("git")
            .args(arguments)
            .args(paths)
            .current_dir(root()),
    )
}

fn said_by(command: &mut Command) -> io::Result<String> {
    let output = command.output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_of_other_stores_do_not_count() {
        for (folder, _) in BACKENDS {
            let path = root().join(path(folder));
            assert!(path.is_dir(), "{folder}");
        }
        assert!(root().join(SIMULATION).is_dir());
        let excludes =
            |servers, folder| paths(servers).contains(&format!(":(exclude){}", path(folder)));
        for (servers, own, other) in [
            (Etcd, "etcd", "redis"),
            (Redlock, "redis", "redis/cluster"),
            (Mysql, "sql", "postgres"),
        ] {
            assert!(
                !excludes(servers, own) && excludes(servers, other),
                "{servers:?}"
            );
        }
    }
}

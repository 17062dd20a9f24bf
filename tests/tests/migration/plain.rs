//! Clients that take a lock with SET NX PX under its plain name, beside ours on the ordinary store.

use tests::{RedisServer, Register, Worker};

use crate::beside::Beside;

const KEY: &str = "orders";

/// The ms for which they take the lock: longer than a busy machine keeps a program from its section.
const TTL: &str = "5000";

const EACH: usize = 3;

/// How the programs of one kind are started.
#[derive(Clone, Copy)]
enum Program {
    Python(&'static str),
    Node,
}

impl Program {
    async fn start(self, url: &str, register: &str) -> Worker {
        match self {
            Self::Python(kind) => {
                Worker::python_program("plain.py", [kind, url, register, KEY, TTL]).await
            }
            Self::Node => Worker::node(["load", url, register, KEY, TTL]).await,
        }
    }

    async fn version(self) -> String {
        let mut worker = match self {
            Self::Python(_) => Worker::python_program("plain.py", ["version"]).await,
            Self::Node => Worker::node(["version"]).await,
        };
        worker.line().await
    }
}

/// Three of them beside three of ours, who have one name for the lock.
async fn take_turns(program: Program, what: &str) {
    let (server, register) = (RedisServer::start().await, Register::start().await);
    let mut workers = Vec::new();
    for _ in 0..EACH {
        workers.push(program.start(&server.url(), register.url()).await);
    }
    let url = format!("{}?layout=plain", server.url());
    let beside = Beside::start(register, &url, KEY, EACH, workers).await;
    beside.passed(400).await;
    let entries = beside.end().await;
    entries.print(&format!("{EACH} of {what} ({})", program.version().await));
    let all = entries.ours + entries.theirs.iter().sum::<u64>();
    assert!(entries.ours >= all / 5, "ours starve: {entries:?}");
    assert!(entries.theirs.iter().all(|it| *it > 0), "{entries:?}");
}

#[tokio::test]
async fn the_lock_of_redis_py_takes_turns_with_ours() {
    if Worker::has_python("migration: the_lock_of_redis_py_takes_turns_with_ours") {
        take_turns(Program::Python("redis-py"), "redis-py's Lock").await;
    }
}

#[tokio::test]
async fn set_nx_px_by_hand_takes_turns_with_ours() {
    if Worker::has_python("migration: set_nx_px_by_hand_takes_turns_with_ours") {
        take_turns(Program::Python("by-hand"), "SET NX PX by hand").await;
    }
}

#[tokio::test]
async fn one_that_looks_at_the_queue_takes_turns_with_ours() {
    if Worker::has_python("migration: one_that_looks_at_the_queue_takes_turns_with_ours") {
        take_turns(
            Program::Python("polite"),
            "SET NX PX that looks at the queue",
        )
        .await;
    }
}

#[tokio::test]
async fn node_redlock_takes_turns_with_ours() {
    if Worker::has_node("migration: node_redlock_takes_turns_with_ours") {
        take_turns(Program::Node, "node's redlock").await;
    }
}

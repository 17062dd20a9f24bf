//! Clients that take a lock with SET NX PX under its plain name, beside ours on the ordinary store.
//!
//! Section: guarantees.md#beside-clients-of-other-kinds

use std::time::Duration;

use lock_runtime::LockError;
use redis::Value;
use tests::{
    LONG, RedisServer, Register, TIME_LIMIT, Worker, connect, median, queued, release, take, timed,
    within,
};

use crate::beside::Beside;

const KEY: &str = "orders";

/// The ms for which they take the lock: longer than a busy machine keeps a program from its section.
const TTL: &str = "5000";

const EACH: usize = 2;

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

/// Two of them beside two of ours, who have one name for the lock.
async fn take_turns(program: Program, what: &str) {
    let (server, register) = (RedisServer::start().await, Register::start().await);
    let mut workers = Vec::new();
    for _ in 0..EACH {
        workers.push(program.start(&server.url(), register.url()).await);
    }
    let url = format!("{}?layout=plain", server.url());
    let beside = Beside::start(register, &url, KEY, EACH, workers).await;
    beside.passed(150).await;
    // One that looks at the queue may find somebody of ours there for as long as we go on.
    if !matches!(program, Program::Python("polite")) {
        beside.passed_by_others(10).await;
    }
    let entries = beside.end().await;
    entries.print(&format!("{EACH} of {what} ({})", program.version().await));
    let all = entries.ours + entries.theirs.iter().sum::<u64>();
    assert!(entries.ours >= all / 10, "ours starve: {entries:?}");
}

// Section: guarantees.md#beside-clients-of-other-kinds, migrating.md#from-redis-py
#[tokio::test]
async fn the_lock_of_redis_py_takes_turns_with_ours() {
    if Worker::has_python("migration: the_lock_of_redis_py_takes_turns_with_ours") {
        take_turns(Program::Python("redis-py"), "redis-py's Lock").await;
    }
}

// Section: guarantees.md#beside-clients-of-other-kinds, migrating.md#migrating-from-other-locks
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

// Section: guarantees.md#beside-clients-of-other-kinds, migrating.md#from-node-redlock-and-other-redlock-libraries
#[tokio::test]
async fn node_redlock_takes_turns_with_ours() {
    if Worker::has_node("migration: node_redlock_takes_turns_with_ours") {
        take_turns(Program::Node, "node's redlock").await;
    }
}

#[tokio::test]
async fn the_name_of_the_lock_is_its_key() {
    let server = RedisServer::start().await;
    let locks = connect(format!("{}?layout=plain", server.url())).await;
    let item = "a:b";
    for (name, key) in [
        (lock_runtime::key!("stock:{item}"), "stock:a:b"),
        (KEY.parse(), KEY),
    ] {
        let request = locks.lock(name).ttl(LONG);
        let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
        let set = ["SET", key, "somebody", "NX", "PX", TTL];
        assert_eq!(server.cmd(&set).await, Value::Nil, "it was free");
        let waits = locks.lock(guard.key().clone()).ttl(LONG).wait_forever();
        let waiter = queued(&locks, waits).await;
        assert_eq!(
            server.cmd(&["EXISTS", &format!("{key}:q")]).await,
            Value::Int(1)
        );
        release(guard).await;
        release(within(TIME_LIMIT, waiter).await.unwrap()).await;
        assert_eq!(server.cmd(&set).await, Value::Okay);
    }
    for refused in [
        locks.list("*").await.map(drop),
        locks.overview("*").await.map(drop),
    ] {
        assert!(matches!(refused, Err(LockError::InvalidOptions { .. })));
    }
}

/// A waiter that hears nothing asks a second after it has joined.
#[tokio::test]
async fn a_hand_over_of_a_key_with_line_feeds_is_heard() {
    let key = format!("a\nb\n{:032x}\n", 7);
    let server = RedisServer::start().await;
    let url = format!("{}?layout=plain", server.url());
    let (locks, others) = (connect(&*url).await, connect(&*url).await);
    let mut guard = take(&locks, &key, LONG).await;
    let mut hand_overs = Vec::new();
    for _ in 0..20 {
        let request = others.lock(&key).ttl(LONG).wait_forever();
        let waiter = queued(&others, request).await;
        release(guard).await;
        let (took, waiter) = timed(waiter).await;
        hand_overs.push(took);
        guard = waiter.unwrap();
    }
    let took = median(hand_overs);
    assert!(took < Duration::from_millis(600), "{took:?}");
    assert_eq!(server.cmd(&["EXISTS", &key]).await, Value::Int(1));
    release(guard).await;
}

/// Redisson's `RLock` is a hash, for which its scripts and ours find each other's key of the wrong type.
#[tokio::test]
async fn a_hash_closes_the_lock_with_an_error() {
    let server = RedisServer::start().await;
    let locks = connect(format!("{}?layout=plain", server.url())).await;
    server.cmd(&["HSET", KEY, "8743c9c0:1", "1"]).await;
    let request = locks.lock(KEY).ttl(LONG).wait(TIME_LIMIT);
    let error = within(Duration::from_secs(10), request.acquire()).await;
    let error = error.expect_err("somebody holds it");
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    server.cmd(&["DEL", KEY]).await;
    let guard = take(&locks, KEY, LONG).await;
    let theirs = server.try_cmd(&["HEXISTS", KEY, "8743c9c0:1"]).await;
    assert!(theirs.unwrap_err().to_string().contains("WRONGTYPE"));
    release(guard).await;
}

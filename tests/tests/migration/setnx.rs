//! The loop of SETNX, GET and GETSET, as a program in Python runs it, beside ours.
//!
//! Section: guarantees.md#beside-clients-of-other-kinds

use tests::{RedisServer, Register, Worker};

use crate::beside::Beside;

const KEY: &str = "orders";

/// The ms for which the loop takes the lock: longer than a busy machine keeps a program from its section.
const TTL: &str = "5000";

async fn loops(
    url: &str,
    register: &Register,
    unit: &str,
    offset: &str,
    count: usize,
) -> Vec<Worker> {
    let mut workers = Vec::new();
    for _ in 0..count {
        let args = ["setnx", url, register.url(), KEY, unit, offset, TTL];
        workers.push(Worker::python_program("plain.py", args).await);
    }
    workers
}

fn url(server: &RedisServer, settings: &str) -> String {
    let url = server.url().replace("redis://", "redis+setnx://");
    format!("{url}?{settings}")
}

// Section: guarantees.md#beside-clients-of-other-kinds, migrating.md#from-setnx-with-a-timestamp
#[tokio::test]
async fn both_take_turns_while_the_loop_crashes() {
    if !Worker::has_python("migration: both_take_turns_while_the_loop_crashes") {
        return;
    }
    let (server, register) = (RedisServer::start().await, Register::start().await);
    let workers = loops(&server.url(), &register, "ms", "0", 5).await;
    let mut beside = Beside::start(register, &url(&server, "stamp=ms"), KEY, 3, workers).await;
    beside.passed(60).await;
    // It dies with the lock, for which the other four race with ours.
    let mut dead = beside.others.pop().unwrap();
    dead.send("die").await;
    assert_eq!(dead.line().await, "held");
    dead.kill().await;
    beside.passed(60).await;
    for number in 0..8 {
        beside.others[number % 4].send("forget").await;
        beside.passed(15).await;
    }
    let entries = beside.end().await;
    entries.print("4 loops in Python that write ms");
    assert!(
        entries.ours > 0 && entries.theirs.iter().any(|it| *it > 0),
        "{entries:?}"
    );
}

#[tokio::test]
async fn times_are_written_as_the_loop_writes_them() {
    if !Worker::has_python("migration: times_are_written_as_the_loop_writes_them") {
        return;
    }
    for (unit, offset, name) in [
        ("s", "0", "whole seconds"),
        ("float", TTL, "the start, with a fraction"),
    ] {
        let (server, register) = (RedisServer::start().await, Register::start().await);
        let workers = loops(&server.url(), &register, unit, offset, 2).await;
        let url = url(&server, &format!("stamp={unit}&offset={offset}ms"));
        let mut beside = Beside::start(register, &url, KEY, 2, workers).await;
        beside.passed(40).await;
        // After a crash of either side.
        beside.others[0].send("forget").await;
        beside.passed(20).await;
        beside.passed_by_others(5).await;
        let entries = beside.end().await;
        entries.print(&format!("2 loops in Python that write {name}"));
        assert!(entries.ours > 0, "{entries:?}");
    }
}

//! Promise: ten thousand locks and ten thousand waiters are looked at without blocking the server.
//!
//! It prints what it has measured: `cargo test -p lockctl --test thousands -- --nocapture`. Another program that takes the
//! processor away only ever adds to a time, so the best of several looks is what counts.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use redis::aio::MultiplexedConnection;
use tests::{PATIENCE, RedisServer, within};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

const LOCKS: u32 = 10_000;
const LOOKS: usize = 8;
/// What the server does nothing else in, at most.
const LONGEST_CALL: Duration = Duration::from_millis(5);
/// A look of a program that is not optimized, on a busy machine.
const LOOK: Duration = Duration::from_secs(3);

/// As many held locks, each with a waiter, or with all of them at the first.
async fn fill(server: &RedisServer, one_line: bool) -> MultiplexedConnection {
    let mut connection = server.connection().await;
    let now: (u64, u64) = redis::cmd("TIME")
        .query_async(&mut connection)
        .await
        .unwrap();
    for chunk in 0..10 {
        let mut pipeline = redis::pipe();
        for number in (chunk * LOCKS / 10)..((chunk + 1) * LOCKS / 10) {
            let owner = RedisServer::owner_key(&format!("many:{number}"));
            let name = format!("{number:032x} 4121@web-3 shop::buy");
            pipeline
                .cmd("SET")
                .arg(&owner)
                .arg(name)
                .arg("PX")
                .arg(600_000)
                .ignore();
            let awaited = if one_line {
                RedisServer::owner_key("many:0")
            } else {
                owner
            };
            let channel = format!("lock:grant:{:032x}", number % 100);
            let member = format!(
                "x:10000:{channel}\n{:032x} 77@web-4 shop::wait",
                number + LOCKS
            );
            let place = now.0 * 1_000_000 + u64::from(number);
            pipeline
                .cmd("ZADD")
                .arg(format!("{awaited}:q"))
                .arg(place)
                .arg(member)
                .ignore();
            // They are there until much later.
            let seen = place + 600_000_000;
            pipeline
                .cmd("ZADD")
                .arg(format!("{awaited}:s"))
                .arg(seen)
                .arg(channel)
                .ignore();
        }
        let () = pipeline.query_async(&mut connection).await.unwrap();
    }
    connection
}

fn lockctl(server: &RedisServer, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockctl"));
    command.args(args).env("LOCK_URL", server.url());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Forgets the longest call so far.
async fn forget(connection: &mut MultiplexedConnection) {
    let watch = ["CONFIG", "SET", "latency-monitor-threshold", "1"];
    let () = command(&watch).query_async(connection).await.unwrap();
    let _: i64 = command(&["LATENCY", "RESET"])
        .query_async(connection)
        .await
        .unwrap();
}

/// The longest call since then, as the server's latency monitor has it; it knows none below 1 ms.
async fn longest(connection: &mut MultiplexedConnection) -> Duration {
    let events: Vec<(String, i64, u64, u64)> = command(&["LATENCY", "LATEST"])
        .query_async(connection)
        .await
        .unwrap();
    let commands = events.iter().filter(|event| event.0.ends_with("command"));
    Duration::from_millis(commands.map(|event| event.3).max().unwrap_or(0))
}

fn command(words: &[&str]) -> redis::Cmd {
    let mut command = redis::Cmd::new();
    command.arg(words);
    command
}

/// Checks the best of several looks, and prints all.
fn judge(what: &str, looks: &[(Duration, Duration)]) {
    let tell = |it: &(Duration, Duration)| {
        format!(
            "{} ms, longest call {} ms",
            it.0.as_millis(),
            it.1.as_millis()
        )
    };
    let told: Vec<_> = looks.iter().map(tell).collect();
    println!("{what}: {}", told.join("; "));
    let (look, call) = (
        looks.iter().map(|it| it.0).min(),
        looks.iter().map(|it| it.1).min(),
    );
    assert!(look.unwrap() < LOOK, "{what} takes too long");
    assert!(call.unwrap() < LONGEST_CALL, "{what} blocks the server");
}

#[tokio::test]
async fn thousands_of_locks_and_waiters_are_seen_without_blocking_the_server() {
    let server = RedisServer::start().await;
    let mut connection = fill(&server, false).await;

    let mut looks = Vec::new();
    for _ in 0..LOOKS {
        forget(&mut connection).await;
        let begun = Instant::now();
        let output = within(PATIENCE, lockctl(&server, &["ls"]).output())
            .await
            .unwrap();
        let took = begun.elapsed();
        assert_eq!(output.stdout.split(|it| *it == b'\n').count(), 10_002);
        looks.push((took, longest(&mut connection).await));
    }
    judge("ls", &looks);

    looks.clear();
    let mut top = lockctl(&server, &["top", "--json", "--every", "50ms"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
    within(PATIENCE, lines.next_line()).await.unwrap();
    for _ in 0..LOOKS {
        forget(&mut connection).await;
        let begun = Instant::now();
        let line = within(PATIENCE, lines.next_line()).await.unwrap().unwrap();
        let took = begun.elapsed();
        assert!(line.contains(r#""held":10000,"waiting":10000"#), "{line}");
        looks.push((took, longest(&mut connection).await));
    }
    judge("top", &looks);
}

#[tokio::test]
async fn a_line_of_thousands_is_told_without_blocking_the_server() {
    let server = RedisServer::start().await;
    let mut connection = fill(&server, true).await;
    let mut looks = Vec::new();
    for _ in 0..LOOKS {
        forget(&mut connection).await;
        let begun = Instant::now();
        let args = ["status", "many:0", "--json"];
        let output = within(PATIENCE, lockctl(&server, &args).output())
            .await
            .unwrap();
        let took = begun.elapsed();
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(told.contains(r#""waiters":10000"#), "{told}");
        assert!(told.contains(r#""place":1000,"#) && !told.contains(r#""place":1001,"#));
        looks.push((took, longest(&mut connection).await));
    }
    judge("status", &looks);
}

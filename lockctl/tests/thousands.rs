//! Promise: ten thousand locks and ten thousand waiters are looked at without blocking the server.
//!
//! It prints what the server has done: `cargo test -p lockctl --test thousands -- --nocapture`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::process::Stdio;

use tests::{RedisServer, TIME_LIMIT, within};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

const LOCKS: u32 = 10_000;
const LOOKS: usize = 8;

/// As many held locks, each with a waiter, or with all of them at the first.
async fn fill(server: &RedisServer, one_line: bool) {
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
            let position = now.0 * 1_000_000 + u64::from(number);
            pipeline
                .cmd("ZADD")
                .arg(format!("{awaited}:q"))
                .arg(position)
                .arg(member)
                .ignore();
            // They are there until much later.
            let seen = position + 600_000_000;
            pipeline
                .cmd("ZADD")
                .arg(format!("{awaited}:s"))
                .arg(seen)
                .arg(channel)
                .ignore();
        }
        let () = pipeline.query_async(&mut connection).await.unwrap();
    }
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

/// What the server has done for one look.
struct Cost {
    calls: f64,
    /// What a call of each kind takes on average, the dearest kind.
    per_call: f64,
    /// What was sent to clients.
    bytes: f64,
}

/// Looks several times and prints what the server did each time; the best is what counts, since another program that
/// takes the processor away only ever adds to a time.
async fn costs(what: &str, server: &RedisServer, mut look: impl AsyncFnMut()) -> Cost {
    let mut best = None::<Cost>;
    for _ in 0..LOOKS {
        server.cmd(&["CONFIG", "RESETSTAT"]).await;
        look().await;
        let cost = cost(server).await;
        let Cost {
            calls,
            per_call,
            bytes,
        } = cost;
        println!("{what}: {calls} calls of {per_call:.0} µs, {bytes} bytes");
        if best.as_ref().is_none_or(|it| per_call < it.per_call) {
            best = Some(cost);
        }
    }
    best.unwrap()
}

async fn cost(server: &RedisServer) -> Cost {
    let info = server.cmd(&["INFO", "stats", "commandstats"]).await;
    let info: String = redis::from_redis_value(info).unwrap();
    let number = |line: &str, name: &str| -> Option<f64> {
        let (_, rest) = line.split_once(name)?;
        rest.split([',', '\r']).next()?.parse().ok()
    };
    let looks = ["cmdstat_scan:", "cmdstat_evalsha:", "cmdstat_keys:"];
    let commands = || {
        info.lines()
            .filter(|it| looks.iter().any(|name| it.starts_with(name)))
    };
    let calls: f64 = commands().filter_map(|it| number(it, "calls=")).sum();
    let bytes = info
        .lines()
        .find_map(|it| number(it, "total_net_output_bytes:"));
    Cost {
        calls,
        per_call: commands()
            .filter_map(|it| number(it, "usec_per_call="))
            .fold(0.0, f64::max),
        bytes: bytes.unwrap(),
    }
}

/// It takes many small calls, and none that takes as long as one that reads `all` names.
async fn goes_in_steps(what: &str, server: &RedisServer, all: &Cost, look: impl AsyncFnMut()) {
    let steps = costs(what, server, look).await;
    assert!(
        steps.calls > f64::from(LOCKS) / 50.0,
        "{what} asks for much at once"
    );
    assert!(
        steps.per_call < all.per_call / 2.0,
        "{what} blocks the server"
    );
}

#[tokio::test]
async fn thousands_of_locks_and_waiters_are_seen_without_blocking_the_server() {
    let server = RedisServer::start().await;
    fill(&server, false).await;
    let all = costs("KEYS", &server, async || {
        drop(server.cmd(&["KEYS", "*"]).await);
    })
    .await;
    goes_in_steps("ls", &server, &all, async || {
        let ls = lockctl(&server, &["ls"]).output();
        let output = within(TIME_LIMIT, ls).await.unwrap();
        assert_eq!(output.stdout.split(|it| *it == b'\n').count(), 10_002);
    })
    .await;

    let mut top = lockctl(&server, &["top", "--json", "--every", "50ms"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
    goes_in_steps("top", &server, &all, async || {
        // It may have looked before, and begun to look again.
        for _ in 0..3 {
            let line = within(TIME_LIMIT, lines.next_line())
                .await
                .unwrap()
                .unwrap();
            assert!(line.contains(r#""held":10000,"waiting":10000"#), "{line}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_queue_of_thousands_is_reported_without_reading_all_of_it() {
    let server = RedisServer::start().await;
    fill(&server, true).await;
    let cost = costs("status", &server, async || {
        let status = lockctl(&server, &["status", "many:0", "--json"]).output();
        let output = within(TIME_LIMIT, status).await.unwrap();
        let reported = String::from_utf8(output.stdout).unwrap();
        assert!(reported.contains(r#""waiters":10000"#), "{reported}");
        assert!(
            reported.contains(r#""position":1000,"#) && !reported.contains(r#""position":1001,"#)
        );
    })
    .await;
    assert!(
        cost.bytes < f64::from(LOCKS) * 30.0,
        "it reads the whole queue"
    );
}

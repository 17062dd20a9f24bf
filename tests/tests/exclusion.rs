//! Promise: no two holders at once, and fences only grow, under the load of several processes.
//!
//! Section: guarantees.md#one-holder-at-a-time
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::Duration;

use tests::{RedisServer, Register, Worker, within};
use tokio::task::JoinSet;

tests::checks_of_kind!(exclusive, Kind::Exclusive, []);

const PROCESSES: u64 = 4;
const TASKS: u64 = 16;
const KEYS: u64 = 4;
const SECTIONS: u64 = 20_000;

// Section: guarantees.md#one-holder-at-a-time, guarantees.md#fencing-tokens-grow
#[tokio::test]
async fn twenty_thousand_sections_never_overlap() {
    let (server, register) = (RedisServer::start().await, Register::start().await);
    let mut workers = JoinSet::new();
    for _ in 0..PROCESSES {
        let share = [TASKS, KEYS, SECTIONS / PROCESSES].map(|it| it.to_string());
        let args = [
            "sections".to_owned(),
            server.url(),
            register.url().to_owned(),
        ];
        workers.spawn(async move {
            let args = args.iter().chain(&share);
            let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
            while worker.line().await != "done" {}
            assert!(worker.wait().await.success());
        });
    }
    within(Duration::from_secs(120), workers.join_all()).await;

    assert_eq!(register.violations().await, [""; 0]);
    assert_eq!(register.sections().await, SECTIONS);
    assert_eq!(server.keys("lock:{*").await, [""; 0], "not released");
}

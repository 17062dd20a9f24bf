//! What an election costs on Redis, and what the server notes of a leader.
//!
//! Section: guarantees.md#elections

use lock_runtime::{Clock, LockConfig};
use tests::{LONG, RedisServer, TIME_LIMIT, Worker, connect, eventually};

use super::{ELECTION, campaign, leads, next, observe};

/// How many calls there are between a resignation and the lead of the next candidate at most.
const CALLS: usize = 3;

#[tokio::test]
async fn a_resignation_and_the_next_lead_take_three_calls() {
    let server = RedisServer::start().await;
    // Nothing is sent because time passes.
    let config = || LockConfig::new(server.url()).expect("a URL");
    let (locks, others) = (
        connect(config().clock(Clock::manual())).await,
        connect(config().clock(Clock::manual())).await,
    );
    let leadership = leads(campaign(&locks, "first")).await;
    let follows = campaign(&others, "second");
    server.queued(ELECTION, 1).await;
    let noted = async || server.keys("*:n:*").await.len() == 1;
    eventually(TIME_LIMIT, noted).await;
    let mut monitor = server.monitor().await;
    leadership.resign();
    let leadership = leads(follows).await;
    let commands = monitor.commands(&server).await;
    let about = |command: &&Vec<String>| command.iter().any(|word| word.contains("{reports}"));
    let calls: Vec<_> = commands.iter().filter(about).collect();
    assert!((1..=CALLS).contains(&calls.len()), "{calls:#?}");
    leadership.resign();
}

#[tokio::test]
async fn a_leader_that_stops_at_once_is_seen() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let ttl = u64::try_from(LONG.as_millis()).expect("a minute");
    let program = env!("CARGO_BIN_EXE_worker");
    let mut worker = Worker::candidate(program, &server.url(), [ELECTION, "it"], ttl).await;
    let fence = worker.fence().await;
    // Its lease is renewed, and its grant is noted, after a third of a minute without an election.
    let noted = async || server.keys("*:n:*").await.len() == 1;
    eventually(TIME_LIMIT, noted).await;
    worker.pause();
    let leader = next(&mut observe(&locks)).await;
    assert_eq!((&*leader.data, leader.fencing_token.get()), ("it 1", fence));
    assert!(leader.since.is_some());
    worker.kill().await;
}

//! `run` whose lock is lost: nothing runs on without it.

use std::time::Duration;

use tests::{LONG, RedisServer, TIME_LIMIT, connect, take};

use crate::support::{Running, ends, is_alive, objects};

/// Writes its process and that of a child, and goes on for long.
const FAMILY: &str = "sleep 600 & echo $!; echo $$; wait";
/// The same, deaf to SIGTERM.
const STUBBORN: &str = "trap '' TERM; sleep 600 & echo $!; echo $$; wait";

#[tokio::test]
async fn a_revoked_lock_stops_the_command_and_its_children() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let mut run = Running::script(&server, &["key", "--ttl", "60s", "--json"], FAMILY);
    let (child, command) = (run.pid().await, run.pid().await);
    assert_eq!(locks.force_release("key").await.unwrap(), 1);
    let ended = run.end().await;
    assert_eq!(ended.code, 73, "{ended:?}");
    assert!(!is_alive(child) && !is_alive(command));
    let said = objects(&ended.stderr);
    assert_eq!(said.last().unwrap()["event"], "lost");
    // Somebody else may have it at once.
    drop(take(&locks, "key", LONG).await);
}

#[tokio::test]
async fn a_key_that_is_deleted_stops_the_command() {
    let server = RedisServer::start().await;
    let mut run = Running::script(&server, &["key", "--ttl", "1s"], FAMILY);
    let (child, command) = (run.pid().await, run.pid().await);
    server.cmd(&["DEL", &RedisServer::owner_key("key")]).await;
    let ended = run.end().await;
    assert_eq!(ended.code, 73, "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("the lock was lost: stopping the command"),
        "{ended:?}"
    );
    assert!(!is_alive(child) && !is_alive(command));
}

#[tokio::test]
async fn a_server_that_is_gone_stops_the_command_when_its_lease_ends() {
    let mut server = RedisServer::start().await;
    let mut run = Running::script(&server, &["key", "--ttl", "1s"], FAMILY);
    let (child, command) = (run.pid().await, run.pid().await);
    server.kill().await;
    let ended = run.end().await;
    assert_eq!(ended.code, 73, "{ended:?}");
    assert!(!is_alive(child) && !is_alive(command));
}

#[tokio::test]
async fn a_command_that_ignores_sigterm_is_killed_after_the_grace() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let mut run = Running::script(
        &server,
        &["key", "--ttl", "60s", "--grace", "700ms"],
        STUBBORN,
    );
    let (child, command) = (run.pid().await, run.pid().await);
    let begun = std::time::Instant::now();
    locks.force_release("key").await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(
        begun.elapsed() > Duration::from_millis(600) || is_alive(command),
        "it has its grace"
    );
    assert_eq!(run.end().await.code, 73);
    assert!(begun.elapsed() >= Duration::from_millis(700));
    ends(child, TIME_LIMIT).await;
    ends(command, TIME_LIMIT).await;
}

#[tokio::test]
async fn a_command_that_is_to_be_notified_runs_on() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let script = "echo ready; sleep 1; echo still here; exit 4";
    let mut run = Running::script(
        &server,
        &["key", "--ttl", "60s", "--on-lost", "notify"],
        script,
    );
    run.line().await;
    locks.force_release("key").await.unwrap();
    assert_eq!(run.line().await, "still here");
    let ended = run.end().await;
    assert_eq!(ended.code, 4);
    assert!(ended.stderr.contains("runs on without it"), "{ended:?}");
}

#[tokio::test]
async fn a_lock_that_was_gone_at_the_end_is_no_success() {
    let server = RedisServer::start().await;
    let mut run = Running::script(&server, &["key", "--ttl", "60s"], "echo ready; sleep 0.5");
    run.line().await;
    server.cmd(&["DEL", &RedisServer::owner_key("key")]).await;
    let ended = run.end().await;
    assert_eq!(ended.code, 73, "{ended:?}");
    assert!(
        ended.stderr.contains("gone when the command ended"),
        "{ended:?}"
    );
}

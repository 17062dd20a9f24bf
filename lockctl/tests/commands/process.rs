//! `run` whose own process is killed or stands still: the command does not outlive it.

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tests::{RedisServer, TIME_LIMIT};

use crate::support::{Running, ends, is_alive};

const FAMILY: &str = "trap '' TERM HUP; sleep 600 & echo $!; echo $$; wait";

#[tokio::test]
async fn a_command_ends_with_lockctl_and_its_children_do() {
    let server = RedisServer::start().await;
    let mut run = Running::script(&server, &["key", "--ttl", "60s"], FAMILY);
    let (child, command) = (run.pid().await, run.pid().await);
    run.signal(Signal::SIGKILL);
    assert_eq!(run.end().await.code, -9);
    ends(command, TIME_LIMIT).await;
    ends(child, TIME_LIMIT).await;
}

#[tokio::test]
async fn a_command_ends_when_lockctl_stands_still_for_longer_than_its_lease() {
    let server = RedisServer::start().await;
    let mut run = Running::script(&server, &["key", "--ttl", "1s", "--grace", "200ms"], FAMILY);
    let (child, command) = (run.pid().await, run.pid().await);
    run.signal(Signal::SIGSTOP);
    ends(command, TIME_LIMIT).await;
    ends(child, TIME_LIMIT).await;
    run.signal(Signal::SIGCONT);
    assert_eq!(run.end().await.code, 73);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_ends_with_lockctl_where_its_guardian_was_killed_before() {
    let server = RedisServer::start().await;
    let mut run = Running::script(
        &server,
        &["key", "--ttl", "60s"],
        "echo $PPID; echo $$; exec sleep 600",
    );
    let (lockctl, command) = (run.pid().await, run.pid().await);
    let guardian = children(lockctl).into_iter().find(|it| *it != command);
    kill(guardian.expect("a guardian"), Signal::SIGKILL).unwrap();
    assert!(is_alive(command));
    run.signal(Signal::SIGKILL);
    assert_eq!(run.end().await.code, -9);
    ends(command, TIME_LIMIT).await;
}

#[cfg(target_os = "linux")]
fn children(of: Pid) -> Vec<Pid> {
    let path = format!("/proc/{of}/task/{of}/children");
    let numbers = std::fs::read_to_string(path).unwrap();
    let pids = numbers
        .split_whitespace()
        .map(|it| Pid::from_raw(it.parse().unwrap()));
    pids.collect()
}

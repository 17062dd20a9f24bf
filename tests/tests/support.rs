//! The servers, workers and the register do what the other tests build on.

use std::{os::unix::process::ExitStatusExt, process::Stdio, sync::Arc, time::Duration};

use redis::{AsyncCommands, Value};
use rustix::process::{Pid, test_kill_process};
use tests::{RedisServer, Register, Worker, eventually, unique, within};
use tokio::{process::Command, task::JoinSet};

const SOON: Duration = Duration::from_secs(5);

/// Whether there is such a process, even one that has ended and was not waited for.
fn exists(pid: u32) -> bool {
    let pid = Pid::from_raw(pid.cast_signed()).expect("not 0");
    test_kill_process(pid).is_ok()
}

#[tokio::test]
async fn a_server_answers_and_counts_and_ends_when_dropped() {
    let server = RedisServer::start().await;
    server.cmd(&["SET", "b", "1"]).await;
    server.cmd(&["SET", "a", "1"]).await;
    assert_eq!(server.keys("*").await, ["a", "b"]);
    assert_eq!(server.calls("set").await, 2);
    assert_eq!(server.calls("del").await, 0);

    let pid = server.pid();
    drop(server);
    assert!(!exists(pid), "the server outlived its owner");
}

#[tokio::test]
async fn a_stopped_server_is_silent_until_resumed_and_can_be_dropped() {
    let server = RedisServer::start().await;
    let mut connection = server.connection().await;
    server.stop();
    let mut ping = tokio::spawn(async move { connection.ping::<String>().await });
    let silent = tokio::time::timeout(Duration::from_millis(100), &mut ping).await;
    assert!(silent.is_err(), "a stopped server answered");
    server.resume();
    let answer = within(SOON, ping).await.expect("no panic");
    assert_eq!(answer.expect("an answer"), "PONG");

    server.stop();
    let pid = server.pid();
    drop(server);
    assert!(!exists(pid), "the stopped server outlived its owner");
}

#[tokio::test]
async fn a_restart_keeps_the_address_and_what_was_to_be_kept() {
    let mut forgetful = RedisServer::start().await;
    let mut lasting = RedisServer::builder().append_only().start().await;
    for server in [&mut forgetful, &mut lasting] {
        let address = (server.url(), server.socket());
        server.cmd(&["SET", "key", "value"]).await;
        server.restart().await;
        assert_eq!((server.url(), server.socket()), address);
    }
    assert_eq!(forgetful.cmd(&["GET", "key"]).await, Value::Nil);
    let kept = lasting.cmd(&["GET", "key"]).await;
    assert_eq!(kept, Value::BulkString(b"value".to_vec()));
}

#[tokio::test]
async fn a_password_is_asked_for() {
    let server = RedisServer::builder().password("secret").start().await;
    server.cmd(&["PING"]).await;
    let client = redis::Client::open(server.url()).expect("a URL");
    let mut stranger = client
        .get_multiplexed_async_connection()
        .await
        .expect("connecting needs no password");
    assert!(stranger.get::<_, Value>("key").await.is_err());
    let url = server.url_with_user("default", "secret");
    let client = redis::Client::open(url).expect("a URL");
    assert!(client.get_multiplexed_async_connection().await.is_ok());
}

#[tokio::test]
async fn killed_clients_notice() {
    let server = RedisServer::start().await;
    let mut client = server.connection().await;
    server.kill_all_clients().await;
    assert!(client.ping::<String>().await.is_err());
}

#[tokio::test]
async fn the_unix_socket_answers() {
    let server = RedisServer::start().await;
    let client = redis::Client::open(server.unix_url()).expect("a URL");
    let mut connection = client
        .get_multiplexed_async_connection()
        .await
        .expect("connected");
    assert_eq!(
        connection.ping::<String>().await.expect("an answer"),
        "PONG"
    );
}

async fn echo() -> Worker {
    Worker::spawn(env!("CARGO_BIN_EXE_worker"), ["echo"]).await
}

#[tokio::test]
async fn a_worker_answers_pauses_and_ends() {
    let mut worker = echo().await;
    worker.send("hello").await;
    assert_eq!(worker.line().await, "hello");

    worker.pause();
    worker.send("again").await;
    let silent = tokio::time::timeout(Duration::from_millis(100), worker.line()).await;
    assert!(silent.is_err(), "a paused worker answered");
    worker.resume();
    assert_eq!(worker.line().await, "again");

    worker.send("quit").await;
    assert!(worker.wait().await.success());
}

#[tokio::test]
async fn a_worker_is_gone_when_killed_or_dropped() {
    let mut worker = echo().await;
    worker.kill().await;
    assert_eq!(worker.wait().await.signal(), Some(9));

    let worker = echo().await;
    let pid = worker.pid();
    drop(worker);
    assert!(!exists(pid), "the worker outlived its owner");
}

#[tokio::test]
async fn a_worker_without_a_test_ends() {
    let mut orphan = Command::new(env!("CARGO_BIN_EXE_worker"));
    orphan.arg("echo").stdin(Stdio::null());
    let status = within(SOON, orphan.status()).await;
    assert!(status.expect("started").success());
}

#[tokio::test]
async fn the_register_accepts_sections_one_after_the_other() {
    let register = Register::start().await;
    let elsewhere = Register::join(register.url()).await;
    register.enter("a", 1).await.leave().await;
    let other = elsewhere.enter("b", 1).await;
    elsewhere.enter("a", 2).await.leave().await;
    other.leave().await;
    assert_eq!(register.violations().await, [""; 0]);
    assert_eq!(register.sections().await, 3);
}

#[tokio::test]
async fn the_register_sees_overlaps_and_stale_fences() {
    let register = Register::start().await;
    let first = register.enter("a", 9_007_199_254_740_993).await;
    let second = register.enter("a", 9_007_199_254_740_994).await;
    first.leave().await;
    second.leave().await;
    register
        .enter("a", 9_007_199_254_740_994)
        .await
        .leave()
        .await;
    register.enter("a", 10).await.leave().await;
    assert_eq!(
        register.violations().await,
        [
            "a: fence 9007199254740994 entered while another section was inside",
            "a: fence 9007199254740994 entered after 9007199254740994",
            "a: fence 10 entered after 9007199254740994",
        ]
    );
}

#[tokio::test]
async fn the_register_is_cheap() {
    let register = Arc::new(Register::start().await);
    let mut tasks = JoinSet::new();
    for key in 0..64 {
        let register = Arc::clone(&register);
        tasks.spawn(async move {
            for fence in 1..=100 {
                register.enter(&key.to_string(), fence).await.leave().await;
            }
        });
    }
    within(4 * SOON, tasks.join_all()).await;
    assert_eq!(register.sections().await, 6_400);
    assert_eq!(register.violations().await, [""; 0]);
}

#[test]
fn names_are_unique() {
    assert_ne!(unique("name"), unique("name"));
}

#[tokio::test]
async fn eventually_waits_for_a_condition() {
    let server = RedisServer::start().await;
    server.cmd(&["SET", "key", "value", "PX", "50"]).await;
    eventually(SOON, async || server.keys("*").await.is_empty()).await;
}

#[tokio::test]
#[should_panic(expected = "tests/support.rs:")]
async fn a_time_limit_names_the_line_that_set_it() {
    within(Duration::ZERO, std::future::pending::<()>()).await;
}

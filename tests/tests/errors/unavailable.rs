//! What `Unavailable` says of the server and of the reason.
//!
//! Section: guarantees.md#the-body-does-not-begin-without-the-lock

use std::time::Duration;

use lock_runtime::{LockConfig, LockError, LockManager};
use tests::{RedisServer, within};
use tokio::net::TcpSocket;

use crate::{SECOND, TIME_LIMIT};

/// A port that is taken, and that nobody listens on.
fn deaf() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket
}

async fn unavailable<T>(outcome: impl Future<Output = Result<T, LockError>>) -> LockError {
    match within(TIME_LIMIT, outcome).await {
        Err(error @ LockError::Unavailable { .. }) => error,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was available"),
    }
}

/// What a program prints that reports errors with all their sources.
fn report(error: LockError) -> String {
    format!("{:#}", anyhow::Error::from(error))
}

#[tokio::test]
async fn it_names_the_server_and_each_cause_once() {
    let socket = deaf();
    let address = socket.local_addr().unwrap();
    let url = format!("redis://me:hunter2@{address}/3");
    let config = LockConfig::new(url).unwrap().connect_timeout(SECOND);
    let error = unavailable(LockManager::connect(config)).await;
    let sentence = error.to_string();
    let begins = format!("Redis at {address} is unavailable: ");
    assert!(sentence.starts_with(&begins), "{sentence}");
    let text = report(error);
    assert_eq!(text, sentence);
    assert_eq!(text.matches("refused").count(), 1, "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn it_says_the_same_of_the_server_wherever_it_stands() {
    let mut server = RedisServer::start().await;
    let locks = LockManager::connect(server.url()).await.unwrap();
    let begins = format!("Redis at {} is unavailable: ", server.addr());
    server.kill().await;
    let request = locks.lock("key").wait(SECOND / 10);
    for error in [
        unavailable(request.acquire()).await,
        unavailable(locks.status("key")).await,
        unavailable(locks.list("*")).await,
        unavailable(locks.force_release("key")).await,
    ] {
        let sentence = error.to_string();
        assert!(sentence.starts_with(&begins), "{sentence}");
        assert_eq!(report(error), sentence);
    }
}

#[tokio::test]
async fn it_says_how_long_a_silent_server_was_given() {
    let server = RedisServer::start().await;
    let locks = LockManager::connect(server.url()).await.unwrap();
    server.stop();
    let request = locks.lock("key").wait(SECOND / 5);
    let sentence = unavailable(request.acquire()).await.to_string();
    let (_, given) = sentence.split_once("no answer within ").unwrap();
    let digits = given.strip_suffix("ms").unwrap();
    assert!(digits.parse::<u64>().unwrap() >= 200, "{sentence}");
    // Sooner than the first attempt to connect ends.
    let config = LockConfig::new(server.url()).unwrap();
    let config = config.connect_timeout(Duration::from_nanos(1));
    let sentence = unavailable(LockManager::connect(config)).await.to_string();
    assert!(!sentence.contains("elapsed"), "{sentence}");
}

#[tokio::test]
async fn a_missing_password_is_asked_for() {
    let server = RedisServer::builder().password("secret").start().await;
    let sentence = unavailable(LockManager::connect(server.url()))
        .await
        .to_string();
    let says = "is unavailable: the server asks for a password, and none was given";
    assert!(sentence.ends_with(says), "{sentence}");
}

/// Whom the server lets do everything but this.
async fn sentence_without(right: &str) -> String {
    let server = RedisServer::start().await;
    let user = ["ACL", "SETUSER", "shop", "on", ">secret", "~*", "+@all"];
    server.cmd(&[&user[..], &["resetchannels"]].concat()).await;
    if right.starts_with('-') {
        server.cmd(&["ACL", "SETUSER", "shop", "&*", right]).await;
    }
    let url = server.url_with_user("shop", "secret");
    let outcome = async {
        let locks = LockManager::connect(url).await?;
        let held = locks.lock("key").acquire().await?;
        let waiting = locks.lock("key").wait(SECOND).acquire().await;
        drop(held);
        waiting
    };
    unavailable(outcome).await.to_string()
}

#[tokio::test]
async fn a_missing_right_is_named() {
    for (right, named) in [
        ("-zadd", "zadd"),
        ("-subscribe", "subscribe"),
        ("-publish", "publish"),
        ("-evalsha", "evalsha"),
        ("-set", "set"),
        ("&", "lock:"),
    ] {
        let sentence = sentence_without(right).await;
        let found = sentence.to_lowercase().contains(named);
        assert!(found, "{right}: {sentence}");
    }
}

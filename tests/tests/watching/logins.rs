//! Passwords that expire on an open connection, and cannot be renewed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lock_runtime::{Credentials, LockConfig, LockManager};
use tests::{RedisServer, TIME_LIMIT, connect, take_turn, unique, within};
use tracing::Level;

use crate::recorder::{failure, record};

/// A server on which everybody may do everything, and who gets a first password that expires soon, and then what
/// `next` says.
async fn locks(
    server: &RedisServer,
    next: impl Fn() -> Result<Credentials, String> + Send + Sync + 'static,
) -> LockManager {
    server
        .cmd(&[
            "ACL", "SETUSER", "shop", "on", ">right", "~*", "&*", "+@all",
        ])
        .await;
    let asked = Arc::new(AtomicUsize::new(0));
    let config = LockConfig::new(server.url()).unwrap().credentials(move || {
        let first = asked.fetch_add(1, Ordering::SeqCst) == 0;
        let right = Credentials::new("shop", "right").expires_in(Duration::from_millis(100));
        let given = if first { Ok(right) } else { next() };
        async { given }
    });
    connect(config).await
}

/// An event reports it, health has it, and the connection goes on.
async fn is_noticed(server: &RedisServer, locks: &LockManager, says: &str) {
    let event = failure("login failure", says).await;
    assert_eq!(
        (event.level, event.fields.get("connection")),
        (Level::WARN, Some("0"))
    );
    let health = within(TIME_LIMIT, locks.health()).await;
    assert!(health.connected, "{health:?}");
    let message = health.last_error.unwrap().message;
    assert!(message.contains(says), "{message}");
    let connections = server.subscribers().await;
    take_turn(locks, "key").await;
    assert_eq!(server.subscribers().await, connections, "the same one");
}

#[tokio::test]
async fn a_provider_that_fails_later_is_noticed() {
    record();
    let server = RedisServer::start().await;
    let says = unique("the vault is closed");
    let error = says.clone();
    let locks = locks(&server, move || Err(error.clone())).await;
    is_noticed(&server, &locks, &says).await;
}

#[tokio::test]
async fn a_new_password_that_the_server_refuses_is_noticed() {
    record();
    let server = RedisServer::start().await;
    let locks = locks(&server, || Ok(Credentials::new("shop", "wrong"))).await;
    is_noticed(&server, &locks, "WRONGPASS").await;
}

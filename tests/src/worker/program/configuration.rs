//! Programs that are configured once, at their start, as a user's is.

use lock_runtime::{LockConfig, LockError, distributed_lock, init};
use tests::connect;

#[distributed_lock(key = "last:{call}", ttl = "60s")]
async fn locked(call: usize) -> Result<(), LockError> {
    println!("the body of call {call} runs");
    Ok(())
}

/// Forgets to configure anything.
pub(crate) async fn unconfigured() {
    match locked(0).await {
        Ok(()) => println!("no error"),
        Err(error @ LockError::NotConfigured) => println!("not configured: {error}"),
        Err(error) => println!("{error}"),
    }
}

/// Is configured by its environment, and ends right after its last call.
pub(crate) async fn from_environment(calls: usize) {
    let _locks = match LockConfig::from_env() {
        Ok(config) => init(config).await.expect("connected"),
        Err(error) => return println!("{error}"),
    };
    for call in 0..calls {
        locked(call).await.expect("locked");
    }
}

/// Connects without installing anything, and ends right after its last locks.
pub(crate) async fn ends_at_once(url: &str) {
    let locks = connect(url).await;
    let mut guards = Vec::new();
    for key in 0..200 {
        let request = locks.lock(format!("last:{key}"));
        guards.push(request.acquire().await.expect("free"));
    }
    drop(guards);
    println!("the last guard is dropped");
}

/// Is configured twice.
pub(crate) async fn installed_twice() {
    let first = init("memory:").await.expect("installed");
    println!("{}", init("memory:").await.expect_err("the second one"));
    let other = connect("memory:").await;
    println!("{}", other.install().expect_err("the third one"));
    let guard = first
        .manager()
        .lock("last:0")
        .acquire()
        .await
        .expect("locked");
    // The first one stays installed.
    assert!(guard.is_held());
    let contended = locked_at_once(0).await.expect_err("held");
    println!("{contended}");
}

#[distributed_lock(key = "last:{call}", wait = "0s")]
async fn locked_at_once(call: usize) -> Result<(), LockError> {
    Ok(())
}

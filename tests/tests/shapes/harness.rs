//! Runs one shape: it waits while its lock is held, works once it is free, and prints its line.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use lock_runtime::{IntoKey, LockConfig, LockManager};
use tests::{unique, within};

/// No shape takes as long as this: something hangs.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Locks of the test's own, in memory; made anywhere, in a runtime too.
pub(crate) fn manager() -> LockManager {
    let config = LockConfig::new(format!("memory:{}", unique("shapes"))).unwrap();
    futures_executor::block_on(LockManager::connect(config)).unwrap()
}

/// The output of a call of an annotated function, whose future is `Send`.
///
/// It must take the lock `key` before its body runs.
pub(crate) fn shape<F>(name: &str, key: impl IntoKey, call: F) -> F::Output
where
    F: Future + Send,
{
    local_shape(name, key, call)
}

/// The same of a future that stays on its thread, as the one of the plain function does.
pub(crate) fn local_shape<F: Future>(name: &str, key: impl IntoKey, call: F) -> F::Output {
    let locks = manager();
    shape_on(&locks, name, key, locks.scope(call))
}

/// The same of a function that has its own way to `locks`.
pub(crate) fn shape_on<F: Future>(
    locks: &LockManager,
    name: &str,
    key: impl IntoKey,
    call: F,
) -> F::Output {
    let key = key.into_key().unwrap();
    let waits = async {
        let held = locks.lock(key.clone()).acquire().await.unwrap();
        let mut call = pin!(call);
        // More often than a body that did not wait would take.
        for _ in 0..5 {
            let polled = poll_once(call.as_mut()).await;
            assert!(polled.is_pending(), "{name}: does not wait for `{key}`");
            settled(locks).await;
        }
        held.release();
        call.await
    };
    let output = block_on(waits);
    println!("shape: {name}");
    output
}

/// The output of a call that does not wait for the lock `key`, which is held all the time.
pub(crate) fn refused<F>(name: &str, key: impl IntoKey, call: F) -> F::Output
where
    F: Future + Send,
{
    let locks = manager();
    let fails = async {
        let held = locks.lock(key).acquire().await.unwrap();
        let output = locks.scope(call).await;
        assert!(held.is_held());
        output
    };
    let output = block_on(fails);
    println!("shape: {name}");
    output
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    runtime.block_on(async { within(TIME_LIMIT, future).await })
}

async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

/// Returns when what `locks` was asked before has been answered: they keep the order.
async fn settled(locks: &LockManager) {
    let guard = locks.lock("settled").acquire().await.unwrap();
    assert!(guard.release_confirmed().await.unwrap());
}

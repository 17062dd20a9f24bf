//! Holds locks for a while each, whatever becomes of their server, and says for how long it was sure of them.

use std::{sync::Arc, time::Duration};

use lock_runtime::{LockConfig, LockGuard, LockManager};
use tests::{boottime, connect};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::Orders;

/// How often a holder looks whether it still has its lock.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// A waiter gives up after this, and tries another lock.
const WAIT: Duration = Duration::from_secs(2);

/// Takes locks of `keys` keys by `tasks` tasks until the next order; says `KEY FENCE FROM UNTIL` for each, in nanoseconds
/// of [`boottime`], and `done` at the end.
pub(crate) async fn holds(mut orders: Orders, url: &str, [tasks, keys]: [u64; 2]) {
    let config = LockConfig::new(url).expect("a URL");
    let locks = connect(config.unavailable_wait_forever()).await;
    let stop = watch::Sender::new(false);
    let mut running = JoinSet::new();
    println!("connected");
    for _ in 0..tasks {
        running.spawn(hold_again(locks.clone(), keys, stop.subscribe()));
    }
    orders.recv().await;
    stop.send_replace(true);
    running.join_all().await;
    println!("done");
}

async fn hold_again(locks: LockManager, keys: u64, stopped: watch::Receiver<bool>) {
    while !*stopped.borrow() {
        let key: Arc<str> = fastrand::u64(..keys).to_string().into();
        let acquire = locks.lock(&*key).wait_forever().acquire();
        if let Ok(Ok(guard)) = timeout(WAIT, acquire).await {
            let time = Duration::from_millis(fastrand::u64(..300));
            hold(&key, guard, time).await;
        }
    }
}

/// Holds a lock for this time, or until it is lost.
async fn hold(key: &str, guard: LockGuard, time: Duration) {
    let from = boottime();
    let mut until = from;
    loop {
        // Before the look, so that the lock was ours then.
        let now = boottime();
        if !guard.is_held() {
            break;
        }
        until = now;
        if until.saturating_sub(from) >= time {
            break;
        }
        sleep(LOOK_EVERY).await;
    }
    let fence = guard.fencing_token();
    println!("{key} {fence} {} {}", from.as_nanos(), until.as_nanos());
}

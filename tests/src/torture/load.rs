//! What a tortured process does: takes locks for short bodies that note every poll and write to a fenced register.

use std::{future::poll_fn, path::Path, pin::pin, sync::Arc, time::Duration};

use lock_runtime::{LockConfig, LockError, LockGuard, LockManager};
use redis::{Script, aio::MultiplexedConnection};
use tokio::{task::JoinSet, time::sleep};

use super::{
    KEYS, TASKS, TTL,
    history::{History, Kind, monotonic},
};
use crate::server::connect;

/// Takes a write only under a fence that is none of an earlier holder's.
const WRITE: &str = "
local last = tonumber(redis.call('GET', KEYS[1]) or '0')
if tonumber(ARGV[1]) < last then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('RPUSH', KEYS[1] .. ':log', ARGV[1])
return 1
";

/// Runs until the process ends.
pub async fn run(locks: &str, register: &str, directory: &Path) {
    let history = Arc::new(History::open(directory).expect("the history can be written"));
    let register = connect(register).await;
    let config = LockConfig::new(locks).expect("a URL");
    let manager = LockManager::connect(config).await.expect("connected");
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (manager, history) = (manager.clone(), Arc::clone(&history));
        let register = register.clone();
        tasks.spawn(async move {
            loop {
                section(&manager, &register, &history).await;
            }
        });
    }
    tasks.join_all().await;
}

async fn section(manager: &LockManager, register: &MultiplexedConnection, history: &History) {
    let key = format!("torture-{}", fastrand::usize(..KEYS));
    let asked = monotonic();
    let request = manager.lock(&key).ttl(TTL).wait(Duration::from_secs(5));
    let Ok(guard) = request.acquire().await else {
        // The server is away; the faults decide for how long.
        sleep(Duration::from_millis(20)).await;
        return;
    };
    let fence = guard.fencing_token().get();
    history.note_at(asked, Kind::Asked, &key, fence);
    let body = body(&key, fence, register.clone(), history);
    match guard.hold(noted(body, &guard, &key, history)).await {
        Ok(()) => history.note(Kind::Done, &key, fence),
        Err(LockError::Lost { .. }) => history.note(Kind::Lost, &key, fence),
        Err(error) => panic!("a body ends by itself or is lost: {error}"),
    }
}

async fn body(key: &str, fence: u64, mut register: MultiplexedConnection, history: &History) {
    // Half of them may outlast several leases.
    let most = if fastrand::bool() { 300 } else { 30 };
    for _ in 0..fastrand::u32(1..most) {
        let script = Script::new(WRITE);
        let mut write = script.key(key);
        let taken: bool = write
            .arg(fence)
            .invoke_async(&mut register)
            .await
            .expect("the register is not tortured");
        let kind = if taken { Kind::Accepted } else { Kind::Stale };
        history.note(kind, key, fence);
        sleep(Duration::from_millis(5)).await;
    }
}

/// Notes the beginning of every poll of `body`.
async fn noted<F: Future>(body: F, guard: &LockGuard, key: &str, history: &History) -> F::Output {
    let mut body = pin!(body);
    let mut kind = Kind::Enter;
    let fence = guard.fencing_token().get();
    poll_fn(|cx| {
        let late = !guard.is_held();
        history.note(if late { Kind::Late } else { kind }, key, fence);
        kind = Kind::Poll;
        body.as_mut().poll(cx)
    })
    .await
}

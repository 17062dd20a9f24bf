//! What the Redis client and server do behind one's back does no harm to a lock.

use std::{
    collections::HashMap,
    error::Error,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lock_runtime::{LockConfig, LockError, LockGuard, LockManager};
use tests::{Proxy, RedisServer, begin, connect, eventually, unique, within};
use tokio::{task::JoinSet, time::sleep};

/// Far longer than any test; then one call may take a second.
const TTL: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_command_that_nobody_waits_for_still_runs() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let locks = connect(proxy.url()).await;
    let key = unique("dropped");
    proxy.requests().hold();
    let mut acquire = Box::pin(locks.lock(&key).ttl(TTL).acquire());
    begin(&mut acquire.as_mut()).await;
    // One that is dropped before it is sent is never sent.
    within(SOON, proxy.requests().held()).await;
    drop(acquire);
    assert_eq!(server.traces(&key).await, [""; 0], "not there yet");
    proxy.requests().pass();
    // It runs, and so does what undoes it.
    let done = async || server.calls("evalsha").await >= 2;
    eventually(SOON, done).await;
    let gone = async || server.traces(&key).await.is_empty();
    eventually(SOON, gone).await;
}

#[tokio::test]
async fn a_reply_lost_does_not_make_us_wait_for_ourselves() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let locks = connect(proxy.url()).await;
    let waits = [SOON, Duration::ZERO];
    for (cut, wait) in [(true, waits[0]), (true, waits[1]), (false, waits[0])] {
        let key = unique("lost");
        proxy.replies().hold();
        let request = locks.lock(&key).ttl(TTL).wait(wait);
        let acquire = tokio::spawn(request.acquire());
        within(SOON, proxy.replies().held()).await;
        assert!(server.owner(&key).await.is_some(), "it was done");
        if cut {
            proxy.cut().await;
        } else {
            // The client gives up on the connection by itself.
            let gone = async || server.listeners().await == 0;
            eventually(SOON, gone).await;
        }
        proxy.replies().pass();
        let guard = within(SOON, acquire).await.expect("no panic");
        let guard = guard.unwrap_or_else(|error| panic!("cut {cut}, {wait:?}: {error}"));
        let released = within(SOON, guard.release_confirmed()).await;
        assert!(released.expect("an answer"));
        assert_eq!(server.traces(&key).await, [""; 0]);
    }
}

/// Sections of one process, by key: how many are inside, and the highest fence.
#[derive(Default)]
struct Witness(Mutex<HashMap<String, (u32, u64)>>);

impl Witness {
    fn enter(&self, guard: &LockGuard) {
        let mut keys = self.0.lock().expect("no panic");
        let (inside, highest) = keys.entry(guard.key().to_string()).or_default();
        *inside += 1;
        assert_eq!(*inside, 1, "{}: two at once", guard.key());
        let fence = guard.fencing_token().get();
        assert!(*highest < fence, "{}: {fence} again", guard.key());
        *highest = fence;
    }

    fn leave(&self, guard: &LockGuard) {
        let mut keys = self.0.lock().expect("no panic");
        let section = keys.get_mut(guard.key().as_str()).expect("entered");
        section.0 -= 1;
    }
}

/// Leaves also where the body is dropped.
struct Section<'a>(&'a Witness, &'a LockGuard);

impl Drop for Section<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

#[tokio::test]
async fn a_late_reply_is_not_taken_for_another() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let managers = [connect(proxy.url()).await, connect(proxy.url()).await];
    let witness = Arc::new(Witness::default());
    let done = Arc::new(AtomicU64::new(0));
    let keys: Vec<String> = (0..3).map(|_| unique("delay")).collect();

    let mut tasks = JoinSet::new();
    for task in 0..12 {
        // One call may take 100 ms here.
        let locks = managers[task % 2].clone();
        let key = keys[task % 3].clone();
        let (witness, done) = (Arc::clone(&witness), Arc::clone(&done));
        tasks.spawn(async move {
            for _ in 0..15 {
                let request = locks.lock(&key).ttl(Duration::from_secs(1)).wait_forever();
                let outcome = request.run(async |guard| {
                    witness.enter(guard);
                    let _section = Section(&witness, guard);
                    sleep(Duration::from_millis(2)).await;
                });
                match outcome.await {
                    Ok(()) | Err(LockError::Lost { .. }) => done.fetch_add(1, Ordering::SeqCst),
                    Err(error) => panic!("{error}"),
                };
            }
        });
    }
    for late in [60, 150, 250, 90, 300, 200].map(Duration::from_millis) {
        proxy.replies().delay(late);
        sleep(Duration::from_millis(200)).await;
        proxy.replies().pass();
        let before = done.load(Ordering::SeqCst);
        let goes_on = async || done.load(Ordering::SeqCst) >= (before + 3).min(180);
        eventually(SOON, goes_on).await;
    }
    within(2 * SOON, tasks.join_all()).await;
    assert_eq!(done.load(Ordering::SeqCst), 180);
    let nothing = async || server.keys("lock:{*").await.is_empty();
    eventually(SOON, nothing).await;
}

#[tokio::test]
async fn a_new_connection_is_subscribed_again() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let (holder, other) = (connect(server.url()).await, connect(proxy.url()).await);
    let key = unique("push");
    let guard = holder.lock(&key).ttl(TTL).acquire().await;
    let guard = guard.expect("the lock is free");
    let acquire = other.lock(&key).ttl(TTL).wait_forever().acquire();
    let waiter = tokio::spawn(acquire);
    server.queued(&key, 1).await;

    let seen = async || {
        let key = RedisServer::seen_key(&key);
        server.cmd(&["ZRANGE", &key, "0", "-1", "WITHSCORES"]).await
    };
    let before = seen().await;
    server.kill_all_clients().await;
    // It has asked again since.
    eventually(SOON, async || seen().await != before).await;

    // Whatever it might ask now is not heard: the grant comes by itself.
    proxy.requests().hold();
    let released = within(SOON, guard.release_confirmed()).await;
    assert!(released.expect("an answer"));
    let granted = within(Duration::from_millis(900), waiter).await;
    let granted = granted.expect("no panic").expect("pushed");
    assert!(granted.is_held());
    proxy.requests().pass();
}

#[tokio::test]
async fn a_password_appears_in_no_text() {
    const SECRET: &str = "hunter2swordfish";
    let mut server = RedisServer::builder().password(SECRET).start().await;
    let quick = |url: String| {
        let config = LockConfig::new(url).expect("a valid URL");
        config.connect_timeout(SOON)
    };
    let url = server.url_with_user("default", SECRET);
    let config = quick(url.clone());
    let mut texts = vec![format!("{config:?}")];
    let locks = LockManager::connect(config).await.expect("connected");
    let guard = locks.lock("secret").ttl(TTL).acquire().await;
    let guard = guard.expect("the lock is free");
    texts.push(format!("{locks:?} {guard:?} {:?}", locks.lock("secret")));

    server.kill().await;
    let down = locks.lock("down").wait(Duration::from_millis(300));
    texts.push(everything(&down.acquire().await.expect_err("no server")));
    let config = quick(url).connect_timeout(Duration::from_millis(300));
    let unreachable = LockManager::connect(config).await;
    texts.push(everything(&unreachable.expect_err("no server")));

    let server = RedisServer::builder().password("another").start().await;
    for user in ["", "default", "nobody"] {
        let url = server.url_with_user(user, SECRET);
        let error = LockManager::connect(quick(url)).await;
        let error = error.expect_err("a wrong password");
        assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
        texts.push(everything(&error));
    }
    for text in texts {
        assert!(!text.contains(SECRET), "{text}");
    }
}

/// All that can be printed of an error and its sources.
fn everything(error: &LockError) -> String {
    let mut texts = vec![format!("{error} {error:?}")];
    let mut source = error.source();
    while let Some(error) = source {
        texts.push(format!("{error} {error:?}"));
        source = error.source();
    }
    texts.join("; ")
}

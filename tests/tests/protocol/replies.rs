//! Answers that are cut off, or come when nobody waits for them any more.

use std::{
    mem,
    time::{Duration, Instant},
};

use lock_runtime::LockError;
use tests::{Proxy, RedisServer, connect, leaves_nothing, queue, release, take, unique, within};
use tokio::time::sleep;

use crate::{FOUND, LONG, SECOND, SOON};

// Section: guarantees.md#one-holder-at-a-time
#[tokio::test]
async fn a_reply_is_cut_and_the_retry_is_slow() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    // What hangs does so for longer than an outage is waited for by default.
    let patient = format!("{}?unavailable_wait=forever", proxy.url());
    let (ours, theirs) = (connect(&patient).await, connect(&server.url()).await);
    let ttl = 2 * SECOND;
    // Sooner than the lease ends, and later.
    for slow in [SECOND / 2, 3 * SECOND] {
        let key = unique("cut");
        proxy.replies().hold();
        let acquire = tokio::spawn(ours.lock(&key).ttl(ttl).wait(SOON).acquire());
        within(SOON, proxy.replies().held()).await;
        let lost = server.owner(&key).await.expect("it was done");
        let fence = server.cmd(&["GET", RedisServer::FENCE_KEY]).await;
        let fence: u64 = redis::from_redis_value(fence).expect("a number");
        let next = (slow > ttl).then(|| theirs.lock(&key).ttl(ttl).wait(SOON).acquire());
        let next = next.map(tokio::spawn);
        // What is dialled now hangs.
        proxy.requests().hold();
        proxy.cut().await;
        proxy.replies().pass();
        sleep(slow).await;

        if let Some(next) = next {
            let next = within(FOUND, next).await.expect("no panic");
            let next = next.expect("the lease of the lost grant has ended");
            proxy.requests().pass();
            server.queued(&key, 1).await;
            assert!(!acquire.is_finished(), "two at once");
            release(next).await;
        } else {
            proxy.requests().pass();
        }
        let guard = within(SOON, acquire).await.expect("no panic");
        let guard = guard.expect("granted at last");
        assert!(guard.fencing_token().get() > fence);
        assert!(guard.remaining() <= ttl, "counted from too late");
        let owner = server.owner(&key).await.expect("ours");
        assert_eq!(owner == lost, slow < ttl, "a token is good for one lease");
        release(guard).await;
        leaves_nothing(&server, &key, FOUND).await;
    }
}

// Section: guarantees.md#the-body-does-not-begin-without-the-lock
#[tokio::test]
async fn a_reply_comes_after_the_call_was_given_up() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let locks = connect(&proxy.url()).await;
    // One call may take 100 ms, so none is answered in time.
    let ttl = SECOND * 2 / 5;
    for _ in 0..3 {
        let key = unique("late");
        proxy.replies().delay(Duration::from_millis(150));
        let request = locks.lock(&key).ttl(ttl).wait(SECOND);
        let body = async |_: &_| panic!("ran without an answer");
        let start = Instant::now();
        let error = within(SOON, request.run::<()>(body)).await;
        let error = error.expect_err("no answer in time");
        assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
        assert!(start.elapsed() >= SECOND, "it did not wait");
        proxy.replies().pass();
        // What the late answers granted is given back, and sooner than after the 60 s of a dead queue.
        let guard = within(FOUND + ttl, take(&locks, &key, ttl)).await;
        release(guard).await;
        leaves_nothing(&server, &key, FOUND).await;
    }
}

// Section: guarantees.md#no-poll-of-the-body-starts-after-its-deadline
#[tokio::test]
async fn a_deadline_counts_from_before_the_command() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let (ours, theirs) = (connect(&proxy.url()).await, connect(&server.url()).await);
    let (late, ttl) = (Duration::from_millis(400), 3 * SECOND);
    // And the drift.
    let lost = late + ttl / 100;
    proxy.replies().delay(late);
    let guard = take(&ours, &unique("reply"), ttl).await;
    let mut left = guard.remaining();
    assert!(left + lost < ttl, "{left:?} from the reply");
    // It grows when it is renewed.
    let renewed = async {
        loop {
            sleep(SECOND / 100).await;
            let before = mem::replace(&mut left, guard.remaining());
            if left > before {
                return;
            }
        }
    };
    within(SOON, renewed).await;
    let most = left + lost;
    assert!(most < ttl, "{left:?} from the answer to a renewal");

    // A grant: from the last question that it still had to wait for.
    let key = unique("push");
    let holder = take(&theirs, &key, LONG).await;
    let waiter = queue(&server, &ours, &key, LONG, 1).await;
    sleep(late + SECOND / 5).await;
    holder.release();
    let guard = within(SOON, waiter).await.expect("no panic");
    let left = guard.remaining();
    // Either it began on what is left of the 3 s since then, or it was renewed first.
    let since = SECOND / 5 + late;
    assert!(
        left + since < 3 * SECOND || left > 3 * SECOND && left + late < LONG,
        "from its arrival: {left:?}"
    );
}

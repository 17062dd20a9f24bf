//! Grants that come late, or not at all.

use std::time::Duration;

use tests::{
    Proxy, RedisServer, begin, connect, granted, leaves_nothing, queue, release, take, unique,
    within,
};
use tokio::time::sleep;

use crate::{FOUND, LONG, SECOND, SOON};

// Section: guarantees.md#no-poll-of-the-body-starts-after-its-deadline
#[tokio::test]
async fn a_grant_comes_after_its_end_and_that_of_another() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let (ours, theirs) = (connect(&proxy.url()).await, connect(&server.url()).await);
    // Shorter than the time between two questions, so that the connection lives on.
    let ttl = Duration::from_millis(400);
    let mut late = 0;
    for _ in 0..10 {
        let key = unique("late");
        let holder = take(&theirs, &key, LONG).await;
        let waiter = queue(&server, &ours, &key, ttl, 1).await;
        let before = server.subscribers().await;
        // Its answer, which may still be on the way.
        sleep(SECOND / 20).await;
        proxy.replies().hold();
        let next = queue(&server, &theirs, &key, LONG, 2).await;
        holder.release();
        within(SOON, proxy.replies().held()).await;
        let next = granted(SOON, next).await;
        proxy.replies().pass();
        // Whatever it makes of the grant, it has asked the server since.
        server.queued(&key, 1).await;
        assert!(!waiter.is_finished(), "it began on a grant that is over");
        assert!(next.is_held());
        late += u32::from(server.subscribers().await == before);
        let fence = next.fencing_token();
        release(next).await;
        let guard = granted(FOUND, waiter).await;
        assert!(guard.fencing_token() > fence);
        assert!(guard.is_held());
        release(guard).await;
        leaves_nothing(&server, &key, FOUND).await;
    }
    assert!(late > 0, "every connection broke, and the grant with it");
}

// Section: guarantees.md#nothing-is-left-behind
#[tokio::test]
async fn a_grant_and_the_leave_are_lost() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let (ours, theirs) = (connect(&proxy.url()).await, connect(&server.url()).await);
    let key = unique("leave");
    for others in [false, true, false, true] {
        let holder = take(&theirs, &key, LONG).await;
        let mut acquire = Box::pin(ours.lock(&key).ttl(LONG).wait_forever().acquire());
        begin(&mut acquire.as_mut()).await;
        server.queued(&key, 1).await;
        let next = if others {
            Some(queue(&server, &theirs, &key, LONG, 2).await)
        } else {
            None
        };
        proxy.replies().hold();
        holder.release();
        within(SOON, proxy.replies().held()).await;
        proxy.requests().hold();
        drop(acquire);
        within(SOON, proxy.requests().held()).await;
        proxy.cut().await;
        proxy.requests().pass();
        proxy.replies().pass();
        // Sooner than the grant ends by itself.
        if let Some(next) = next {
            release(granted(FOUND, next).await).await;
        }
        leaves_nothing(&server, &key, FOUND).await;
    }
}

// Section: guarantees.md#the-lock-goes-on
#[tokio::test]
async fn a_grant_that_was_cut_off_is_found_and_whole() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let (ours, theirs) = (connect(&proxy.url()).await, connect(&server.url()).await);
    let key = unique("lost");
    for _ in 0..5 {
        let holder = take(&theirs, &key, LONG).await;
        let waiter = queue(&server, &ours, &key, LONG, 1).await;
        proxy.replies().hold();
        holder.release();
        within(SOON, proxy.replies().held()).await;
        let token = server.owner(&key).await;
        proxy.cut().await;
        proxy.replies().pass();
        let guard = granted(FOUND, waiter).await;
        assert_eq!(server.owner(&key).await, token, "the same grant");
        assert!(guard.remaining() > LONG / 2, "asking restores the full ttl");
        release(guard).await;
    }
}

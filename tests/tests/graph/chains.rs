//! Those who wait in the process of a holder, of whom the server knows nothing, are in the graph.

use std::sync::Arc;

use lock_runtime::inspect::Edge;
use tests::{LONG, RedisServer, TIME_LIMIT, connect, queued, release, take, waits, within};
use tokio::sync::{Barrier, oneshot};

use crate::{cycles, edges, long, nested, pairs, seen};

#[tokio::test]
async fn a_follower_that_holds_another_lock_is_in_the_graph() {
    let server = RedisServer::start().await;
    let (locks, others) = (connect(server.url()).await, connect(server.url()).await);
    let first = take(&others, "hot", LONG).await;
    // The next holder of `hot` waits for `cold`, whose holder follows it in its chain.
    let same = long(&locks, "hot").function("graph::inner");
    let next = queued(&locks, same).await;
    let follows = nested(&locks, ["cold", "hot"], &Arc::new(Barrier::new(1)));
    waits(&others, "hot", 2).await;
    release(first).await;
    let guard = within(TIME_LIMIT, next).await.unwrap();
    let (held, holds) = oneshot::channel();
    let cold = long(&locks, "cold");
    let holder = tokio::spawn(async move {
        let body = guard.hold(async {
            held.send(()).unwrap();
            cold.acquire().await.map(drop)
        });
        body.await
    });
    within(TIME_LIMIT, holds).await.unwrap();
    let graph = seen(&others, 2).await;
    assert_eq!(edges(&graph), pairs(&[["cold", "hot"], ["hot", "cold"]]));
    let by_server: Vec<_> = graph
        .edges
        .iter()
        .map(|it: &Edge| it.waiter.waited.is_some())
        .collect();
    assert_eq!(by_server, [false, true], "nobody follows: {graph:?}");
    assert_eq!(cycles(&graph), [["cold", "hot"]]);
    follows.abort();
    within(TIME_LIMIT, holder).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn who_has_released_the_lock_is_no_holder_although_a_follower_has_its_token() {
    let server = RedisServer::start().await;
    let (locks, others) = (connect(server.url()).await, connect(server.url()).await);
    let first = take(&others, "hot", LONG).await;
    let next = queued(&locks, long(&locks, "hot")).await;
    let follower = queued(&locks, long(&locks, "hot")).await;
    waits(&others, "hot", 2).await;
    let _kept = take(&others, "cold", LONG).await;
    release(first).await;
    let guard = within(TIME_LIMIT, next).await.unwrap();
    // What is polled under the lock, and awaited after it.
    let mut stays = Box::pin(long(&locks, "cold").acquire());
    let body = guard.hold(async { tests::poll_once(&mut stays).await.is_pending() });
    assert!(body.await.unwrap());
    assert_eq!(edges(&seen(&others, 1).await), pairs(&[["hot", "cold"]]));
    release(guard).await;
    let _follower = within(TIME_LIMIT, follower).await.unwrap();
    assert!(
        within(TIME_LIMIT, others.graph())
            .await
            .unwrap()
            .edges
            .is_empty()
    );
}

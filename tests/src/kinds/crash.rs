//! Crash: a process that is killed while it holds its lock costs the rest of its lease, and nobody else's.

use std::time::{Duration, Instant};

use super::Kind;
use crate::{RedisServer, TIME_LIMIT, Worker, connect, granted, queued, release, within};

const TTL: Duration = Duration::from_secs(2);

/// What it held is free within a second of the end of its lease, and went on to who waited.
pub async fn is_free_after_a_crash(worker: &str, kind: Kind) {
    let server = RedisServer::start().await;
    let (locks, others) = (connect(server.url()).await, connect(server.url()).await);
    let (word, ttl) = (kind.word(), TTL.as_millis().to_string());
    let url = server.url();
    let mut worker = Worker::spawn(worker, ["holder", &url, &word, "key", &ttl]).await;
    let fence = worker.fence().await;

    let mut neighbours = Vec::new();
    for _ in 0..kind.neighbours() {
        let neighbour = kind.request(&locks, "key").ttl(TTL).acquire();
        let neighbour = within(TIME_LIMIT, neighbour).await;
        neighbours.push(neighbour.expect("there is room beside it"));
    }
    let mut rivals = Vec::new();
    for rival in kind.rivals(&others, "key") {
        let rival = queued(&others, rival.ttl(TTL).wait_forever()).await;
        rivals.push(tokio::spawn(async move {
            (rival.await.expect("a turn"), Instant::now())
        }));
    }
    worker.kill().await;
    let killed = Instant::now();
    if kind == Kind::Reader {
        // A writer waits for the living, too, and they keep their lock.
        tokio::time::sleep(TTL + Duration::from_millis(500)).await;
        assert!(rivals.iter().all(|it| !it.is_finished()), "a writer");
        for neighbour in neighbours.drain(..) {
            release(neighbour).await;
        }
    }
    for rival in rivals {
        let rival = async move { rival.await.expect("no panic") };
        let (guard, at) = within(TIME_LIMIT, rival).await;
        assert!(guard.is_held());
        assert!(guard.fencing_token().get() > fence);
        let took = at - killed;
        assert!(took <= TTL + Duration::from_secs(1), "after {took:?}");
    }
    for neighbour in neighbours {
        assert!(neighbour.is_held(), "it lost its own lease");
        release(neighbour).await;
    }
    // So for whoever comes now.
    let next = kind.request(&others, "key").acquire();
    let next = tokio::spawn(async move { next.await.expect("the lock is free") });
    release(granted(TIME_LIMIT, next).await).await;
}

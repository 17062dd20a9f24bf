//! Clients with the scripts of the release before there were chains take turns with those of this one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tests::{PATIENCE, Peer, RedisServer, connect, eventually, within};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::KEY;

/// One that polls for its grants, with the scripts of the release before there were chains.
async fn turns_of_before(mut peer: Peer, numbers: std::ops::Range<u32>, work: Arc<Work>) {
    const TTL: u32 = 10_000;
    for number in numbers {
        if peer.acquire(number, TTL, true).await[1] == "waiting" {
            while peer.ask(number, TTL).await == "waiting" {
                sleep(Duration::from_millis(5)).await;
            }
        }
        let inside = work.enter();
        sleep(Duration::from_micros(300)).await;
        drop(inside);
        assert!(peer.release(number).await);
    }
}

/// Who is inside.
#[derive(Default)]
struct Work {
    inside: AtomicU64,
    turns: AtomicU64,
}

struct Inside<'a>(&'a Work);

impl Work {
    fn enter(&self) -> Inside<'_> {
        assert_eq!(
            self.inside.fetch_add(1, Ordering::SeqCst),
            0,
            "two are inside"
        );
        self.turns.fetch_add(1, Ordering::SeqCst);
        Inside(self)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn clients_of_before_take_turns_with_chains() {
    const TASKS: u64 = 6;
    const TURNS: u64 = 15;
    let server = RedisServer::start().await;
    let (work, last) = (Arc::new(Work::default()), Arc::new(AtomicU64::new(0)));
    let mut tasks = JoinSet::new();
    for number in 0..2 {
        let peer = Peer::new(&server, KEY, true).await.of_before();
        let numbers = 1_000 * number..1_000 * number + 15;
        tasks.spawn(turns_of_before(peer, numbers, Arc::clone(&work)));
        let locks = connect(server.url()).await;
        for _ in 0..TASKS {
            let (locks, work, last) = (locks.clone(), Arc::clone(&work), Arc::clone(&last));
            tasks.spawn(async move {
                for _ in 0..TURNS {
                    let request = locks.lock(KEY).ttl(Duration::from_secs(10)).wait_forever();
                    let guard = request.acquire().await.unwrap();
                    let inside = work.enter();
                    let fence = guard.fencing_token().get();
                    assert!(last.fetch_max(fence, Ordering::SeqCst) < fence);
                    tokio::task::yield_now().await;
                    drop(inside);
                    guard.release();
                }
            });
        }
    }
    within(PATIENCE, async {
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    })
    .await;
    assert_eq!(work.turns.load(Ordering::SeqCst), 2 * (TASKS + 1) * TURNS);
    eventually(PATIENCE, async || server.traces(KEY).await.is_empty()).await;
}

//! A transaction elsewhere that keeps an old snapshot makes no call slower, and none wrong.

use tests::PostgresHome;

use crate::{
    installed,
    peer::{LONG_MS, Peer, Wanted},
};

const LOCK: &str = "lock:{a}";

/// How many pages a query touches.
async fn pages(home: &PostgresHome, peer: &mut Peer, query: &str) -> u64 {
    peer.sql
        .rows(&format!(
            "SET search_path = {}; SET enable_seqscan = off; SET enable_bitmapscan = off",
            home.schema()
        ))
        .await;
    let explained = peer
        .sql
        .column(&format!("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) {query}"))
        .await;
    let buffers = explained.iter().find_map(|line| {
        line.trim()
            .strip_prefix("Buffers: shared ")
            .map(str::to_owned)
    });
    let buffers = buffers.unwrap_or_else(|| panic!("{explained:?}"));
    buffers
        .split(' ')
        .filter_map(|it| it.split_once('=')?.1.parse::<u64>().ok())
        .sum()
}

// Section: postgres.md#what-it-promises
#[tokio::test]
async fn rows_are_found_in_few_pages_however_many_versions_a_snapshot_keeps() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut peer, mut other) = (Peer::new(&home).await, Peer::new(&home).await);
    let mut old = home.peer().await;
    old.rows("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")
        .await;
    let mut last = peer.take(LOCK, 0).await;
    for token in 1..700 {
        assert!(other.wait(LOCK, token).await.is("waiting"));
        assert!(peer.renew(LOCK, token - 1, LONG_MS).await);
        assert!(peer.release(LOCK, token - 1).await);
        let fence = other.standing(LOCK, token).await;
        assert!(fence > last);
        last = fence;
        std::mem::swap(&mut peer, &mut other);
    }
    for token in 1_000..1_300 {
        let reader = Wanted {
            kind: "r",
            ..Wanted::new("lock:{r}", token)
        };
        assert!(peer.acquire(&reader).await.is("granted"));
        if token > 1_000 {
            assert!(peer.release("lock:{r}", token - 1).await);
        }
    }
    let newest =
        |lock| format!("SELECT * FROM lock WHERE name = '{lock}' ORDER BY ver DESC LIMIT 1");
    for lock in [LOCK, "lock:{r}"] {
        let found = pages(&home, &mut peer, &newest(lock)).await;
        assert!(found < 50, "{found} pages for the row of {lock}");
    }
    let head = format!(
        "SELECT * FROM waiter WHERE name = '{LOCK}' AND place > (SELECT head FROM lock WHERE name = '{LOCK}' ORDER BY ver DESC LIMIT 1) \
         ORDER BY place, token LIMIT 1"
    );
    let found = pages(&home, &mut peer, &head).await;
    assert!(found < 60, "{found} pages for the head of the queue");
    let sharers = "SELECT count(*) FROM sharer WHERE name = 'lock:{r}' AND fence >= \
         (SELECT low FROM lock WHERE name = 'lock:{r}' ORDER BY ver DESC LIMIT 1)";
    let found = pages(&home, &mut peer, sharers).await;
    assert!(found < 60, "{found} pages for the holders of a shared lock");
    old.rows("COMMIT").await;
}

//! What waits for the disk: what grants or extends a lease, and nothing else.
//!
//! Section: postgres.md#what-it-promises

use tests::PostgresServer;

use crate::{
    install,
    peer::{LONG_MS, Peer, Wanted},
};

const LOCK: &str = "lock:{a}";

/// A server that writes to the disk for nobody but those who wait for it.
async fn server() -> Option<PostgresServer> {
    let server = PostgresServer::builder()
        .option("wal_writer_delay", "10s")
        .option("autovacuum", "off");
    let server = server.start("tests/postgres_sql").await?;
    install(&mut server.peer().await, "locks").await;
    Some(server)
}

/// Whether a call returns when what it wrote is on the disk, and what it answers.
async fn flushes<T>(peer: &mut Peer, call: impl AsyncFnOnce(&mut Peer) -> T) -> (bool, T) {
    let written = peer.sql.value("SELECT pg_current_wal_insert_lsn()").await;
    let answer = call(peer).await;
    let flushed = format!("SELECT pg_current_wal_flush_lsn() > '{written}'");
    (peer.sql.value(&flushed).await == "t", answer)
}

#[tokio::test]
async fn grants_and_renewals_wait_for_the_disk() {
    let Some(server) = server().await else { return };
    for setting in ["on", "off"] {
        let mut peer = Peer::silent(server.peer().await, "locks");
        // What a role may have been given.
        peer.sql
            .rows(&format!("SET synchronous_commit = {setting}"))
            .await;
        let peer = &mut peer;
        for turn in 0..5 {
            let token = turn * 10;
            let (flushed, fence) = flushes(peer, async |peer| peer.take(LOCK, token).await).await;
            assert!(flushed && fence > 0, "a grant");
            let renewed = flushes(peer, async |peer| peer.renew(LOCK, token, LONG_MS).await).await;
            assert_eq!(renewed, (true, true), "a renewal");
            peer.wait(LOCK, token + 1).await;
            peer.release(LOCK, token).await;
            let (flushed, fence) =
                flushes(peer, async |peer| peer.standing(LOCK, token + 1).await).await;
            assert!(flushed && fence > 0, "a grant that was asked for");
            let calls = [("-", LOCK, token + 1, 0), ("x", "lock:{b}", token, LONG_MS)];
            let (flushed, replies) =
                flushes(peer, async |peer| peer.try_many(&calls).await.unwrap()).await;
            assert!(
                flushed && replies[1].is("granted"),
                "a grant among several calls"
            );
            let calls = [("=", "lock:{b}", token, LONG_MS)];
            let (flushed, replies) =
                flushes(peer, async |peer| peer.try_many(&calls).await.unwrap()).await;
            assert!(
                flushed && replies[0].is("ours"),
                "a renewal among several calls"
            );
            peer.release("lock:{b}", token).await;
            let shared = Wanted {
                kind: "r",
                ..Wanted::new(LOCK, token)
            };
            let (flushed, reply) = flushes(peer, async |peer| peer.acquire(&shared).await).await;
            assert!(flushed && reply.is("granted"), "a shared grant");
            peer.release(LOCK, token).await;
        }
    }
}

#[tokio::test]
async fn nothing_else_waits_for_the_disk() {
    let Some(server) = server().await else { return };
    let mut peer = Peer::silent(server.peer().await, "locks");
    let peer = &mut peer;
    let mut waited = [0; 6];
    let turns = 10;
    for turn in 0..turns {
        let token = u128::from(turn) * 10_u128;
        peer.take(LOCK, token).await;
        let flushed = [
            flushes(peer, async |peer| drop(peer.wait(LOCK, token + 1).await))
                .await
                .0,
            flushes(peer, async |peer| peer.release(LOCK, token).await)
                .await
                .0,
            flushes(peer, async |peer| peer.leave(LOCK, token + 1).await)
                .await
                .0,
            flushes(peer, async |peer| {
                let grant = Wanted {
                    durable: false,
                    ..Wanted::new(LOCK, token + 2)
                };
                assert!(peer.acquire(&grant).await.is("granted"));
            })
            .await
            .0,
            flushes(peer, async |peer| {
                drop(peer.try_many(&[("-", LOCK, token + 2, 0)]).await.unwrap());
            })
            .await
            .0,
            flushes(peer, async |peer| drop(peer.call("sweep('', 100)").await))
                .await
                .0,
        ];
        for (count, flushed) in waited.iter_mut().zip(flushed) {
            *count += u32::from(flushed);
        }
    }
    // The server itself writes to the disk too, now and then.
    assert!(waited.iter().all(|it| *it < turns / 2), "{waited:?}");
}

//! After a crash nothing is granted for as long as a forgotten lease may last.
//!
//! Section: postgres.md#failover

use std::time::Duration;

use tests::PostgresServer;
use tokio::time::sleep;

use crate::{
    install, installed,
    peer::{Peer, Wanted, uuid},
};

const LOCK: &str = "lock:{a}";
const LONGEST: u32 = 1_500;

#[tokio::test]
async fn nothing_is_granted_after_a_crash_until_forgotten_leases_have_ended() {
    let Some(mut server) = PostgresServer::start("tests/postgres_sql").await else {
        return;
    };
    install(&mut server.peer().await, "locks").await;
    let wanted = |token| Wanted {
        longest: LONGEST,
        ttl: LONGEST,
        ..Wanted::new(LOCK, token)
    };
    let mut peer = Peer::silent(server.peer().await, "locks");
    assert_eq!(
        peer.call(&format!("quarantined({LONGEST})")).await[0][0].as_deref(),
        Some("0")
    );
    assert!(peer.acquire(&wanted(1)).await.is("granted"));
    peer.acquire(&wanted(2)).await;
    server.restart_cleanly().await;
    let mut peer = Peer::silent(server.peer().await, "locks");
    assert!(peer.renew(LOCK, 1, 60_000).await);
    assert!(
        peer.acquire(&Wanted {
            wait: false,
            ..wanted(3)
        })
        .await
        .is("busy"),
        "a clean end forgets nothing"
    );

    server.restart().await;
    let mut peer = Peer::silent(server.peer().await, "locks");
    for reply in [
        peer.acquire(&wanted(4)).await,
        peer.acquire(&Wanted {
            kind: "r",
            ..wanted(4)
        })
        .await,
    ] {
        assert!(
            reply.is("quarantined") && (1..=i64::from(LONGEST)).contains(&reply.left),
            "{reply:?}"
        );
    }
    let standings = peer.ask_with(LOCK, &[2], LONGEST, LONGEST).await;
    assert!(standings.fences.is_none() && standings.left > 0);
    // What is held may be renewed and released, and is handed to nobody.
    assert!(peer.renew(LOCK, 1, 60_000).await);
    assert!(peer.release_with(LOCK, 1, 0, false, LONGEST).await);
    let is_handed_to_nobody = "token IS NULL AND waiters = 1";
    assert_eq!(peer.column(LOCK, is_handed_to_nobody).await, "t");
    let (token, session) = (uuid(5), uuid(peer.session));
    let full = format!(
        "acquire_unless_full('{LOCK}', {token}, 'shop', 'x', 60000, {session}, false, NULL, {LONGEST}, true, 1)"
    );
    assert_eq!(peer.call(&full).await[0][0].as_deref(), Some("quarantined"));
    assert_eq!(peer.column(LOCK, is_handed_to_nobody).await, "t");
    let left = peer.call(&format!("quarantined({LONGEST})")).await[0][0]
        .clone()
        .unwrap();
    sleep(Duration::from_millis(left.parse::<u64>().unwrap() + 1)).await;
    let fences = peer
        .ask_with(LOCK, &[2], LONGEST, LONGEST)
        .await
        .fences
        .unwrap();
    assert!(fences[0] > 0);
}

/// As on a machine that starts with a wrong clock.
#[tokio::test]
async fn what_was_noticed_while_the_clock_was_ahead_counts_from_now_on() {
    let Some(home) = installed().await else {
        return;
    };
    let mut sql = home.peer().await;
    let schema = home.schema();
    let ahead = format!("UPDATE {schema}.run SET noticed = clock_timestamp() + interval '1 hour'");
    sql.rows(&ahead).await;
    let left = format!("SELECT {schema}.quarantined({LONGEST})");
    let first: u32 = sql.value(&left).await.parse().expect("a number");
    assert!((1..=LONGEST).contains(&first), "{first}");
    let is_past = format!("SELECT noticed <= clock_timestamp() FROM {schema}.run");
    assert_eq!(sql.value(&is_past).await, "t", "it ends");
}

// Section: postgres.md#what-it-promises
/// One backend that is killed makes the server start over, at a time that does not change.
#[tokio::test]
async fn a_process_of_the_server_that_is_killed_counts_as_a_crash() {
    let Some(server) = PostgresServer::start("tests/postgres_sql").await else {
        return;
    };
    install(&mut server.peer().await, "locks").await;
    let mut victim = server.peer().await;
    let pid = victim
        .value("SELECT pg_backend_pid()")
        .await
        .parse()
        .unwrap();
    server.kill_backend(pid).await;
    let mut peer = Peer::of(server.peer().await, "locks").await;
    let longest = 60_000;
    assert!(
        peer.acquire(&Wanted {
            longest,
            ..Wanted::new(LOCK, 1)
        })
        .await
        .is("quarantined")
    );
    assert!(
        peer.acquire(&Wanted::new(LOCK, 1)).await.is("granted"),
        "who has no quarantine waits for none"
    );
}

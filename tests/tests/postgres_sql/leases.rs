//! Exclusive leases: who has them, for how long, and under which fence.
//!
//! Section: postgres.md#what-it-promises

use std::time::Duration;

use tests::LONG;
use tokio::{join, time::sleep};

use crate::{
    installed,
    peer::{LONG_MS, Peer, Wanted},
};

#[tokio::test]
async fn a_lock_is_granted_to_one_and_again_after_its_release_under_a_larger_fence() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut one, mut other) = (Peer::new(&home).await, Peer::pooled(&home).await);
    let mut last = 0;
    for token in 1..70 {
        let fence = one.take("lock:{a}", token).await;
        assert!(fence > last, "{fence} after {last}");
        last = fence;
        let tried = Wanted {
            wait: false,
            ..Wanted::new("lock:{a}", 1_000)
        };
        let busy = other.acquire(&tried).await;
        assert!(
            busy.is("busy") && busy.left > 0 && busy.others == 0,
            "{busy:?}"
        );
        assert_eq!(busy.holder, format!("{token:032x} 1@host tests::body"));
        assert!(one.release("lock:{a}", token).await);
        assert!(!one.release("lock:{a}", token).await, "released twice");
    }
}

#[tokio::test]
async fn a_token_that_holds_the_lock_is_extended_and_keeps_its_fence() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    for kind in ["x", "r", "p2"] {
        let lock = format!("lock:{{{kind}}}");
        let short = Wanted {
            kind,
            ttl: 5_000,
            ..Wanted::new(&lock, 1)
        };
        let first = peer.acquire(&short).await;
        let again = peer
            .acquire(&Wanted {
                ttl: LONG_MS,
                ..short
            })
            .await;
        assert!(again.is("granted"), "{again:?}");
        assert_eq!(again.fence, first.fence);
        let left = peer
            .column(&lock, "expires > clock_timestamp() + interval '30 s'")
            .await;
        assert_eq!(left, "t", "it was not extended");
        assert_eq!(peer.standing(&lock, 1).await, first.fence);
    }
}

#[tokio::test]
async fn a_lease_that_has_ended_is_neither_renewed_nor_ours_to_release() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    let brief = Wanted {
        ttl: 1,
        ..Wanted::new("lock:{a}", 1)
    };
    let first = peer.acquire(&brief).await;
    sleep(Duration::from_millis(5)).await;
    assert!(!peer.renew("lock:{a}", 1, LONG_MS).await);
    assert!(!peer.release("lock:{a}", 1).await);
    assert!(peer.take("lock:{a}", 2).await > first.fence);
    assert!(!peer.renew("lock:{a}", 1, LONG_MS).await);
    assert!(!peer.release("lock:{a}", 1).await);
    assert!(peer.renew("lock:{a}", 2, LONG_MS).await);
}

/// The clock of the beginning of a transaction would have lost that time.
#[tokio::test]
async fn a_call_that_waited_for_the_row_gives_a_whole_lease() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut holder, mut sql) = (Peer::new(&home).await, home.peer().await);
    let schema = home.schema();
    for token in 1..=3 {
        // A renewal; an acquisition on the fast path; and one that makes the way through the queue.
        let (lock, ttl) = ("lock:{a}", 10_000);
        if token == 1 {
            holder.take(lock, 1).await;
        }
        let kind = if token == 3 { "r" } else { "x" };
        sql.rows(&format!(
            "BEGIN; UPDATE {schema}.lock SET uses = uses WHERE name = '{lock}'"
        ))
        .await;
        let wanted = Wanted {
            kind,
            ttl,
            ..Wanted::new(lock, token)
        };
        let call = async {
            if token == 1 {
                assert!(holder.renew(lock, 1, ttl).await);
            } else {
                assert!(holder.acquire(&wanted).await.is("granted"));
            }
        };
        let unlock = async {
            sleep(Duration::from_millis(500)).await;
            sql.rows("COMMIT").await;
        };
        join!(call, unlock);
        let left = holder
            .column(
                lock,
                "extract(epoch FROM expires - clock_timestamp()) * 1000",
            )
            .await;
        let left: f64 = left.parse().unwrap();
        assert!(
            left > f64::from(ttl) - 400.0,
            "{left} ms are left after call {token}"
        );
        holder.release(lock, token).await;
    }
}

#[tokio::test]
async fn a_lock_that_cools_down_is_nobodys() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    for kind in ["x", "r", "p1"] {
        let lock = format!("lock:{{{kind}}}");
        peer.acquire(&Wanted {
            kind,
            ..Wanted::new(&lock, 1)
        })
        .await;
        assert!(peer.release_with(&lock, 1, 500, false, 0).await);
        assert!(!peer.renew(&lock, 1, LONG_MS).await);
        assert!(!peer.release(&lock, 1).await);
        let next = peer.wait(&lock, 2).await;
        assert!(
            next.is("waiting") && (1..=500).contains(&next.left),
            "{next:?}"
        );
        assert_eq!(next.holder, format!("-{:032x} 1@host tests::body", 1));
        assert_eq!(peer.standing(&lock, 2).await, 0);
        sleep(Duration::from_millis(510)).await;
        assert!(peer.standing(&lock, 2).await > 0);
    }
}

#[tokio::test]
async fn fences_grow_beyond_a_backup_that_was_restored_and_a_clock_that_is_behind() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut peer, mut sql) = (Peer::new(&home).await, home.peer().await);
    let schema = home.schema();
    let fence = peer.take("lock:{a}", 1).await;
    peer.release("lock:{a}", 1).await;
    // What an old backup has.
    sql.rows(&format!("UPDATE {schema}.lock SET fence = 7"))
        .await;
    let restored = peer.take("lock:{a}", 2).await;
    assert!(restored > fence);
    peer.release("lock:{a}", 2).await;
    let ahead = i64::MAX / 2;
    sql.rows(&format!("UPDATE {schema}.lock SET fence = {ahead}"))
        .await;
    assert_eq!(peer.take("lock:{a}", 3).await, ahead + 1);
    let next = peer.wait("lock:{a}", 4).await;
    assert!(next.is("waiting"));
    peer.release("lock:{a}", 3).await;
    assert_eq!(peer.standing("lock:{a}", 4).await, ahead + 2);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    for kind in ["", "y", "r+", "p", "p0", "p-1", "p2-"] {
        let wanted = Wanted {
            kind,
            ..Wanted::new("lock:{a}", 1)
        };
        assert_eq!(
            peer.try_acquire(&wanted).await.unwrap_err().code,
            "22023",
            "{kind}"
        );
    }
}

#[tokio::test]
async fn a_row_that_stays_locked_ends_the_call() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut peer, mut sql) = (Peer::new(&home).await, home.peer().await);
    peer.take("lock:{a}", 1).await;
    sql.rows(&format!(
        "BEGIN; SELECT FROM {}.lock FOR UPDATE",
        home.schema()
    ))
    .await;
    let ended = tests::within(LONG, peer.try_acquire(&Wanted::new("lock:{a}", 2))).await;
    assert_eq!(ended.unwrap_err().code, "55P03");
}

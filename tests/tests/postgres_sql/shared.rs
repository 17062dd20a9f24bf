//! Readers and permits, each with a lease of its own.
//!
//! Section: postgres.md#what-it-promises

use std::time::Duration;

use tokio::time::sleep;

use crate::{
    installed,
    peer::{Peer, Wanted},
};

const LOCK: &str = "lock:{a}";

fn wanted(kind: &'static str, token: u128) -> Wanted {
    Wanted {
        kind,
        ..Wanted::new(LOCK, token)
    }
}

#[tokio::test]
async fn kinds_exclude_each_other_and_permits_are_counted() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    let kinds = [("x", 1), ("r", 5), ("p1", 1), ("p3", 3)];
    for (kind, most) in kinds {
        for token in 0..most {
            assert!(peer.acquire(&wanted(kind, token)).await.is("granted"));
        }
        for (number, (other, _)) in (100..).zip(kinds) {
            let more = Wanted {
                wait: false,
                ..wanted(other, number)
            };
            let reply = peer.acquire(&more).await;
            let expected = match (kind, other) {
                ("r", "r") => "granted",
                _ => "busy",
            };
            assert_eq!(reply.status, expected, "{other} beside {kind}");
        }
        for token in (0..most).chain(100..104) {
            peer.release(LOCK, token).await;
        }
        assert_eq!(
            peer.sql
                .value(&format!("SELECT count(*) FROM {}.sharer", peer.schema))
                .await,
            "0"
        );
    }
}

#[tokio::test]
async fn readers_enter_together_and_pass_no_writer_that_waits() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    let first = peer.acquire(&wanted("r", 1)).await.fence;
    assert!(peer.wait(LOCK, 2).await.is("waiting"));
    for token in 3..6 {
        assert!(
            peer.acquire(&wanted("r", token)).await.is("waiting"),
            "it passed a writer"
        );
    }
    assert!(peer.release(LOCK, 1).await);
    let writer = peer.standing(LOCK, 2).await;
    assert!(writer > first);
    assert!(peer.release(LOCK, 2).await);
    let fences = peer.ask(LOCK, &[3, 4, 5]).await.fences.unwrap();
    assert!(writer < fences[0] && fences.is_sorted(), "{fences:?}");
    // A writer that leaves lets those behind it in.
    assert!(peer.wait(LOCK, 6).await.is("waiting"));
    assert!(peer.acquire(&wanted("r", 7)).await.is("waiting"));
    peer.leave(LOCK, 6).await;
    assert!(peer.standing(LOCK, 7).await > 0);
}

#[tokio::test]
async fn a_permit_whose_lease_has_ended_is_given_out_again_and_the_others_stay() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    let brief = Wanted {
        ttl: 400,
        ..wanted("p2", 1)
    };
    assert!(peer.acquire(&brief).await.is("granted"));
    assert!(peer.acquire(&wanted("p2", 2)).await.is("granted"));
    let next = peer.acquire(&wanted("p2", 3)).await;
    assert!(next.is("waiting") && next.left <= 400, "{next:?}");
    sleep(Duration::from_millis(410)).await;
    assert!(peer.standing(LOCK, 3).await > 0);
    assert!(peer.acquire(&wanted("p2", 4)).await.is("waiting"));
    assert!(!peer.renew(LOCK, 1, 1_000).await);
    assert!(peer.renew(LOCK, 2, 1_000).await);
    assert!(!peer.release(LOCK, 1).await);
    assert_eq!(peer.standing(LOCK, 4).await, 0);
}

#[tokio::test]
async fn a_lock_lasts_as_long_as_the_longest_of_its_leases() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    peer.acquire(&wanted("r", 1)).await;
    let brief = Wanted {
        ttl: 400,
        ..wanted("r", 2)
    };
    peer.acquire(&brief).await;
    sleep(Duration::from_millis(410)).await;
    let writer = Wanted {
        wait: false,
        ..wanted("x", 3)
    };
    assert!(peer.acquire(&writer).await.is("busy"));
    assert!(peer.renew(LOCK, 1, 50).await);
    peer.release(LOCK, 1).await;
    assert!(peer.acquire(&writer).await.is("granted"));
}

#[tokio::test]
async fn a_permit_that_cools_down_is_nobodys_and_counts() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    for token in 1..=2 {
        peer.acquire(&wanted("p2", token)).await;
    }
    assert!(peer.release_with(LOCK, 1, 500, false, 0).await);
    assert!(peer.acquire(&wanted("p2", 3)).await.is("waiting"));
    assert!(!peer.renew(LOCK, 1, 60_000).await && !peer.release(LOCK, 1).await);
    sleep(Duration::from_millis(510)).await;
    assert!(peer.standing(LOCK, 3).await > 0);
}

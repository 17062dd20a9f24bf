//! Who is granted a lock next: in order, whoever calls, and nobody who is gone.
//!
//! Section: postgres.md#what-it-promises

use std::time::{Duration, Instant};

use tests::{LONG, TIME_LIMIT, within};
use tokio::time::sleep;

use crate::{
    installed,
    peer::{LONG_MS, Peer, Wanted, uuid},
};

const LOCK: &str = "lock:{a}";
const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_release_notifies_the_next_waiter_of_a_lease_that_it_has_to_confirm() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut holder, mut waiter) = (Peer::new(&home).await, Peer::new(&home).await);
    holder.take(LOCK, 1).await;
    let first = waiter.wait(LOCK, 2).await;
    let second = waiter.wait(LOCK, 3).await;
    assert!(first.is("waiting") && second.is("waiting"));
    assert!(first.place < second.place);
    assert_eq!((first.others, second.others), (0, 1));
    let standings = waiter.ask(LOCK, &[3, 2, 9]).await;
    assert_eq!(standings.fences.unwrap(), [0, 0, -1]);
    assert_eq!((standings.first, standings.others), (2, 1));
    assert!(standings.left > 0 && standings.holder.starts_with(&format!("{:032x}", 1)));

    assert!(holder.release(LOCK, 1).await);
    let grants = waiter.grants(SOON).await;
    let fence = waiter.column(LOCK, "fence").await.parse().unwrap();
    assert_eq!(grants, [(fence, LOCK.to_owned(), vec![2])]);
    let left = "expires < clock_timestamp() + interval '3 s'";
    assert_eq!(waiter.column(LOCK, left).await, "t");
    assert!(waiter.renew(LOCK, 2, 60_000).await);
    assert_eq!(waiter.column(LOCK, left).await, "f");
    assert_eq!(waiter.column(LOCK, "session IS NULL").await, "t");
}

#[tokio::test]
async fn nobody_passes_the_queue_of_a_lock_whose_lease_has_ended() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut peer, mut newcomer) = (Peer::new(&home).await, Peer::new(&home).await);
    for wait in [false, true] {
        peer.acquire(&Wanted {
            ttl: 400,
            ..Wanted::new(LOCK, 1)
        })
        .await;
        assert!(peer.wait(LOCK, 2).await.is("waiting"));
        sleep(Duration::from_millis(410)).await;
        let reply = newcomer
            .acquire(&Wanted {
                wait,
                ..Wanted::new(LOCK, 3)
            })
            .await;
        assert_eq!(reply.status, if wait { "waiting" } else { "busy" });
        assert!(peer.standing(LOCK, 2).await > 0);
        newcomer.leave(LOCK, 3).await;
        peer.release(LOCK, 2).await;
    }
}

#[tokio::test]
async fn a_waiter_keeps_its_place_under_a_fresh_token() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    peer.take(LOCK, 1).await;
    let mut places = Vec::new();
    for token in 2..6 {
        places.push(peer.wait(LOCK, token).await.place);
    }
    // All behind the first are served and the lock is held, so the head of the queue lies behind their places.
    assert!(peer.leave(LOCK, 3).await || peer.standing(LOCK, 3).await == -1);
    peer.release(LOCK, 1).await;
    peer.release(LOCK, 2).await;
    peer.release(LOCK, 4).await;
    assert!(peer.standing(LOCK, 5).await > 0);
    let late = peer.wait(LOCK, 6).await;
    let old = peer
        .acquire(&Wanted {
            place: Some(places[1]),
            ..Wanted::new(LOCK, 7)
        })
        .await;
    assert_eq!(old.place, places[1]);
    assert!(late.place > places[3]);
    peer.release(LOCK, 5).await;
    assert!(peer.standing(LOCK, 7).await > 0, "it lost its place");
    assert_eq!(peer.standing(LOCK, 6).await, 0);
    peer.release(LOCK, 7).await;
    assert!(peer.standing(LOCK, 6).await > 0);
}

#[tokio::test]
async fn an_old_place_comes_first_also_where_the_lock_is_free() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    let held = Wanted {
        ttl: 400,
        ..Wanted::new(LOCK, 1)
    };
    peer.acquire(&held).await;
    let place = peer.wait(LOCK, 2).await.place;
    sleep(Duration::from_millis(410)).await;
    let old = peer
        .acquire(&Wanted {
            place: Some(place - 1),
            ..Wanted::new(LOCK, 3)
        })
        .await;
    assert!(old.is("granted"), "{old:?}");
    assert_eq!(peer.standing(LOCK, 2).await, 0);
}

#[tokio::test]
async fn a_waiter_that_leaves_is_not_served_and_passes_on_a_grant_that_raced() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    peer.take(LOCK, 1).await;
    for token in 2..=4 {
        peer.wait(LOCK, token).await;
    }
    assert!(!peer.leave(LOCK, 2).await);
    peer.release(LOCK, 1).await;
    assert!(peer.leave(LOCK, 3).await, "it was granted meanwhile");
    assert!(peer.standing(LOCK, 4).await > 0);
    assert_eq!(peer.column(LOCK, "waiters").await, "0");
}

#[tokio::test]
async fn waiters_of_a_connection_that_is_gone_are_passed_over_at_once() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut holder, mut dead, mut living) = (
        Peer::new(&home).await,
        Peer::new(&home).await,
        Peer::new(&home).await,
    );
    holder.take(LOCK, 1).await;
    for token in 2..52 {
        dead.wait(LOCK, token).await;
    }
    living.wait(LOCK, 60).await;
    let bell = format!("{}.bell({})", home.schema(), uuid(dead.session));
    drop(dead);
    // The server notices the end of the connection a moment later.
    let gone = format!("SELECT pg_try_advisory_xact_lock_shared({bell})");
    while holder.sql.value(&gone).await != "t" {
        sleep(Duration::from_millis(1)).await;
    }
    holder.release(LOCK, 1).await;
    assert_eq!(living.grants(SOON).await.len(), 1);
    assert_eq!(living.column(LOCK, "waiters").await, "0");
}

/// A session always gets its own bell.
#[tokio::test]
async fn waiters_of_the_calling_session_are_never_taken_for_gone() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    peer.take(LOCK, 1).await;
    for token in 2..=3 {
        peer.wait(LOCK, token).await;
    }
    let rows = peer
        .call(&format!("status('{LOCK}', {})", uuid(peer.session)))
        .await;
    assert_eq!(rows.len(), 4, "{rows:?}");
    peer.release(LOCK, 1).await;
    assert!(peer.standing(LOCK, 2).await > 0);
    peer.release(LOCK, 2).await;
    assert!(peer.standing(LOCK, 3).await > 0);
}

#[tokio::test]
async fn a_session_that_does_not_confirm_a_grant_costs_the_others_one_lease() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut stopped, mut living) = (Peer::new(&home).await, Peer::new(&home).await);
    for kind in ["x", "p1"] {
        let lock = format!("lock:{{{kind}}}");
        living
            .acquire(&Wanted {
                kind,
                ..Wanted::new(&lock, 1)
            })
            .await;
        for token in 2..52 {
            stopped
                .acquire(&Wanted {
                    kind,
                    ..Wanted::new(&lock, token)
                })
                .await;
        }
        living
            .acquire(&Wanted {
                kind,
                ..Wanted::new(&lock, 60)
            })
            .await;
        living.release(&lock, 1).await;
        let released = Instant::now();
        let granted = within(TIME_LIMIT, async {
            while living.standing(&lock, 60).await == 0 {
                sleep(Duration::from_millis(20)).await;
            }
            released.elapsed()
        })
        .await;
        // Such a lease lasts three seconds, and fifty of them would last minutes.
        assert!(granted < Duration::from_secs(10), "{granted:?}");
        // A grant that was confirmed proves nothing when it ends.
        living
            .acquire(&Wanted {
                kind,
                ..Wanted::new(&lock, 61)
            })
            .await;
        living.release(&lock, 60).await;
        assert!(living.renew(&lock, 61, 30).await);
        living
            .acquire(&Wanted {
                kind,
                ..Wanted::new(&lock, 62)
            })
            .await;
        sleep(Duration::from_millis(40)).await;
        assert!(living.standing(&lock, 62).await > 0);
    }
}

#[tokio::test]
async fn an_open_transaction_that_asserted_its_fence_keeps_everybody_out() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut peer, mut user) = (Peer::new(&home).await, home.peer().await);
    let held = Wanted {
        ttl: 400,
        ..Wanted::new(LOCK, 1)
    };
    let fence = peer.acquire(&held).await.fence;
    user.rows("BEGIN").await;
    let assert = format!("SELECT {}.assert_fence('a', {fence})", home.schema());
    user.rows(&assert).await;
    sleep(Duration::from_millis(410)).await;
    let tried = peer
        .acquire(&Wanted {
            wait: false,
            ..Wanted::new(LOCK, 2)
        })
        .await;
    assert!(tried.is("busy") && tried.left == 0, "{tried:?}");
    let shared = Wanted {
        wait: false,
        kind: "r",
        ..Wanted::new(LOCK, 2)
    };
    assert!(peer.acquire(&shared).await.is("busy"));
    let batch = [("x", LOCK, 3, LONG_MS), ("x", "lock:{b}", 4, LONG_MS)];
    let mut batch = peer.try_many(&batch).await.unwrap();
    batch.sort_by_key(|it| it.call);
    let next = &batch[0];
    assert!(next.is("waiting") && next.left == 0, "{next:?}");
    assert!(batch[1].is("granted"), "{batch:?}");
    assert_eq!(peer.standing(LOCK, 3).await, 0);
    assert_eq!(peer.force(LOCK).await, 0);
    user.rows("COMMIT").await;
    assert!(peer.standing(LOCK, 3).await > fence);
    assert_eq!(user.try_rows(&assert).await.unwrap_err().code, "LR001");
}

/// Places stay in the order of joining, and further apart than a chain may reach, while the clock is behind them.
#[tokio::test]
async fn newcomers_stand_behind_everybody_also_where_the_clock_has_gone_back() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    peer.take(LOCK, 1).await;
    let ahead = peer.wait(LOCK, 2).await.place + 5_000_000;
    assert!(
        peer.acquire(&Wanted {
            place: Some(ahead),
            ..Wanted::new(LOCK, 3)
        })
        .await
        .is("waiting")
    );
    let mut last = ahead;
    for token in 4..7 {
        let place = peer.wait(LOCK, token).await.place;
        assert!(place > last + 1_000, "{place} behind {last}");
        last = place;
    }
    for token in 1..6 {
        assert!(peer.release(LOCK, token).await, "{token}");
        assert!(peer.standing(LOCK, token + 1).await > 0, "{token}");
    }
    assert!(within(LONG, peer.release(LOCK, 6)).await);
    assert!(peer.wait(LOCK, 7).await.is("granted"));
}

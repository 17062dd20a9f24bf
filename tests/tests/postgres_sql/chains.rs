//! Chains: neighbours of one session that are granted a lock together.
//!
//! Section: postgres.md#what-it-promises

use std::time::Duration;

use tests::PostgresHome;
use tokio::time::sleep;

use crate::{
    installed,
    peer::{Peer, Wanted, uuid},
};

const LOCK: &str = "lock:{a}";
const SOON: Duration = Duration::from_secs(10);

fn more(token: u128) -> Wanted {
    Wanted {
        kind: "x+",
        ..Wanted::new(LOCK, token)
    }
}

/// A lock that is held under the token 1, and two sessions.
async fn held(home: &PostgresHome) -> (Peer, Peer) {
    let (mut one, other) = (Peer::new(home).await, Peer::new(home).await);
    one.take(LOCK, 1).await;
    (one, other)
}

#[tokio::test]
async fn neighbours_of_a_session_are_granted_the_lock_together_if_all_of_them_said_so() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut one, mut other) = held(&home).await;
    for token in 2..5 {
        other.acquire(&more(token)).await;
    }
    for (token, kind) in [(5, "x"), (6, "x-")] {
        other
            .acquire(&Wanted {
                kind,
                ..more(token)
            })
            .await;
    }
    sleep(Duration::from_millis(5)).await;
    other.acquire(&more(7)).await;
    other
        .acquire(&Wanted {
            who: "2@host tests::other",
            ..more(8)
        })
        .await;
    one.release(LOCK, 1).await;
    let (fence, _, tokens) = other.grants(SOON).await.remove(0);
    assert_eq!(
        tokens,
        [2, 3, 4],
        "and nobody behind one that is left out for longer than 1 ms"
    );
    assert_eq!(other.standing(LOCK, 2).await, fence);
    assert_eq!(other.standing(LOCK, 5).await, 0);
    other.release(LOCK, 2).await;
    let (next, _, tokens) = other.grants(SOON).await.remove(0);
    assert!(next > fence + 2, "the followers have numbers of their own");
    assert_eq!(tokens, [5]);
    assert_eq!(other.column(LOCK, "waiters").await, "3");
}

#[tokio::test]
async fn a_chain_passes_nobody_who_joined_more_than_a_millisecond_before() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut one, mut other) = held(&home).await;
    let base = other.acquire(&more(2)).await.place;
    let at = |place| Some(base + place);
    other
        .acquire(&Wanted {
            place: at(10),
            ..more(3)
        })
        .await;
    one.acquire(&Wanted {
        place: at(20),
        ..more(4)
    })
    .await;
    other
        .acquire(&Wanted {
            place: at(1_020),
            ..more(5)
        })
        .await;
    other
        .acquire(&Wanted {
            place: at(1_021),
            ..more(6)
        })
        .await;
    one.release(LOCK, 1).await;
    let (_, _, tokens) = other.grants(SOON).await.remove(0);
    assert_eq!(tokens, [2, 3, 5]);
    other.release(LOCK, 2).await;
    assert!(one.standing(LOCK, 4).await > 0, "it was passed");
    one.release(LOCK, 4).await;
    assert!(other.standing(LOCK, 6).await > 0);
}

#[tokio::test]
async fn at_most_sixty_four_are_granted_the_lock_together() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut one, mut other) = held(&home).await;
    let base = other.acquire(&more(2)).await.place;
    for token in 3..100_u32 {
        let place = Some(base + i64::from(token));
        other
            .acquire(&Wanted {
                place,
                ..more(token.into())
            })
            .await;
    }
    one.release(LOCK, 1).await;
    let (_, _, tokens) = other.grants(SOON).await.remove(0);
    assert_eq!(tokens, (2..66).collect::<Vec<_>>());
    assert_eq!(other.column(LOCK, "waiters").await, "34");
}

#[tokio::test]
async fn only_who_was_passed_the_lock_may_assert_its_fence() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut one, mut other) = held(&home).await;
    let mut user = home.peer().await;
    for token in 2..5 {
        other.acquire(&more(token)).await;
    }
    one.release(LOCK, 1).await;
    let fence = other.standing(LOCK, 2).await;
    let schema = home.schema();
    let assert = |fence| format!("SELECT {schema}.assert_fence('a', {fence})");
    user.rows(&assert(fence)).await;
    for later in [fence + 1, fence + 2] {
        assert_eq!(
            user.try_rows(&assert(later)).await.unwrap_err().code,
            "LR001"
        );
    }
    // A transaction of the one before is still open.
    user.rows("BEGIN").await;
    user.rows(&assert(fence)).await;
    assert!(!other.pass(LOCK, 2, fence + 1).await);
    user.rows("COMMIT").await;
    assert!(other.pass(LOCK, 2, fence + 1).await);
    user.rows(&assert(fence + 1)).await;
    assert_eq!(
        user.try_rows(&assert(fence)).await.unwrap_err().code,
        "LR001"
    );
    assert!(!other.pass(LOCK, 2, fence).await, "it goes back");
    assert!(
        !other.pass(LOCK, 2, fence + 3).await,
        "nobody has this number"
    );
    assert!(
        !other.pass(LOCK, 3, fence + 2).await,
        "the token is that of the first"
    );
    assert!(other.pass(LOCK, 2, fence + 2).await);
    other.release(LOCK, 2).await;
    assert!(!other.pass(LOCK, 2, fence + 2).await);
    assert!(other.take(LOCK, 9).await > fence + 2);
}

/// What a holder finds: 2 if it was asked to yield, 1 if it was not.
async fn found(peer: &mut Peer) -> String {
    let call = format!("standing(ARRAY['{LOCK}'], ARRAY[{}])", uuid(2));
    peer.call(&call).await[0][0].clone().unwrap()
}

/// How many holders were asked.
async fn asks(peer: &mut Peer) -> String {
    let call = format!("ask_to_yield('{LOCK}')");
    peer.call(&call).await[0][0].clone().unwrap()
}

// Section: guarantees.md#asking-to-yield
#[tokio::test]
async fn only_the_present_holder_is_asked() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut one, mut other) = held(&home).await;
    for token in 2..5 {
        other.acquire(&more(token)).await;
    }
    one.release(LOCK, 1).await;
    let fence = other.standing(LOCK, 2).await;
    for next in 1..=3 {
        assert_eq!(found(&mut other).await, "{1}");
        assert_eq!(asks(&mut one).await, "1");
        assert_eq!(found(&mut other).await, "{2}");
        assert_eq!(other.pass(LOCK, 2, fence + next).await, next < 3);
    }
    // It goes on as a reader, which is still the same holder.
    let session = uuid(other.session);
    let call = format!("downgrade('{LOCK}', {}, {session}, 0)", uuid(2));
    assert_eq!(other.call(&call).await[0][0].as_deref(), Some("t"));
    assert_eq!(found(&mut other).await, "{2}");
}

//! Many tasks hand one lock from manager to manager, drop what they have asked for, and let tickets expire.
//!
//! Section: guarantees.md#tickets

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;

use lock_runtime::{LockError, LockGuard, LockManager};
use tests::{LONG, Store, TIME_LIMIT, poll_once, release, take, within};
use tokio::join;
use tokio::task::{JoinSet, yield_now};

use crate::{SHORT, adopt, issue};

tests::on_every_store! {
    a_lock_that_goes_from_hand_to_hand_has_one_holder [tickets fencing],
}

const TASKS: usize = 8;
const TURNS: usize = 16;

/// What the holders of the lock see of each other.
#[derive(Default)]
struct Seen {
    inside: AtomicBool,
    fence: AtomicU64,
}

impl Seen {
    /// Works under the lock for a while.
    async fn work(&self, guard: &LockGuard) {
        assert!(guard.is_held());
        let fence = guard.fencing_token().get();
        assert!(!self.inside.swap(true, Ordering::SeqCst), "two hold it");
        assert!(self.fence.swap(fence, Ordering::SeqCst) < fence);
        yield_now().await;
        self.inside.store(false, Ordering::SeqCst);
    }
}

async fn a_lock_that_goes_from_hand_to_hand_has_one_holder(store: Store) {
    let seen = Arc::new(Seen::default());
    let managers = [store.manager().await, store.manager().await];
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (seen, mut managers) = (Arc::clone(&seen), managers.clone());
        managers.rotate_left(task % 2);
        tasks.spawn(async move {
            for turn in 0..TURNS {
                let guard = take(&managers[0], "key", LONG).await;
                seen.work(&guard).await;
                hand_over(&managers, guard, turn, &seen).await;
            }
        });
    }
    while let Some(ended) = within(TIME_LIMIT * 3, tasks.join_next()).await {
        ended.unwrap();
    }
    release(take(&managers[0], "key", LONG).await).await;
}

/// A lock leaves this guard in one of several ways.
async fn hand_over(managers: &[LockManager; 2], guard: LockGuard, turn: usize, seen: &Seen) {
    let [ours, others] = managers;
    match turn % 4 {
        0 if turn == 0 => drop(issue(guard, SHORT).await),
        0 => drop(guard),
        1 => {
            let mut dropped = Box::pin(guard.into_ticket(LONG));
            if let Poll::Ready(ticket) = poll_once(&mut dropped).await {
                release(adopt(others, &ticket.unwrap()).await.unwrap()).await;
            }
        }
        2 => {
            let ticket = issue(guard, LONG).await;
            let guard = match join!(adopt(ours, &ticket), adopt(others, &ticket)) {
                (Ok(guard), Err(refused)) | (Err(refused), Ok(guard)) => {
                    assert!(matches!(refused, LockError::InvalidTicket { .. }));
                    guard
                }
                both => panic!("{both:?}"),
            };
            seen.work(&guard).await;
        }
        _ => {
            let ticket = issue(guard, LONG).await;
            let guard = adopt(others, &ticket).await.unwrap();
            seen.work(&guard).await;
            let ticket = issue(guard, LONG).await;
            let guard = adopt(ours, &ticket).await.unwrap();
            seen.work(&guard).await;
            release(guard).await;
        }
    }
}

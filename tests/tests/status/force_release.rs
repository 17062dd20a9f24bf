//! `force_release`: revokes a lock, and hands it to the next waiter.
//!
//! Section: guarantees.md#looking-at-a-lock

use std::time::Duration;

use lock_runtime::LockError;
use tests::{
    LONG, Pulse, Store, TIME_LIMIT, kinds::Kind, on_every_store, queued, release, settled,
    take_turn, within,
};

use crate::status;

on_every_store! {
    a_forced_release_stops_the_body_and_hands_over [force_release fencing],
    a_forced_release_counts_those_who_share [force_release read permits fencing],
    a_forced_release_of_a_free_lock_does_nothing [force_release],
}

async fn a_forced_release_stops_the_body_and_hands_over(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    let fence = guard.fencing_token();
    let next = queued(&others, others.lock("key").ttl(LONG).wait_forever()).await;
    let pulse = Pulse::default();
    let body = tokio::spawn({
        let pulse = pulse.clone();
        async move { guard.hold(pulse.beat(&guard)).await }
    });
    within(TIME_LIMIT, pulse.reaches(3)).await;
    assert_eq!(others.force_release("key").await.unwrap(), 1);
    // At once, and not at the next renewal, which is twenty seconds away.
    let outcome = within(Duration::from_secs(3), body).await.unwrap();
    let Err(error) = outcome;
    let LockError::Lost {
        key,
        fencing_token: of,
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!((key.as_str(), of), ("key", fence));
    let next = within(Duration::from_secs(3), next).await.unwrap();
    assert!(next.fencing_token() > fence);
    settled(&locks).await;
    assert!(next.is_held(), "the old holder has released it");
    release(next).await;
    assert_eq!(store.traces().await, [""; 0]);
}

async fn a_forced_release_counts_those_who_share(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    for kind in [Kind::Reader, Kind::Permits(4)] {
        let mut guards = Vec::new();
        for locks in [&locks, &others, &locks] {
            let guard = kind.request(locks, "key").ttl(LONG).acquire().await;
            guards.push(guard.unwrap());
        }
        // Its lease ends, and it is none of them any more.
        let short = Duration::from_millis(200);
        let fixed = kind.request(&locks, "key").ttl(short).renew(false);
        let fixed = fixed.acquire().await.unwrap();
        let gone = async || status(&others, "key").await.holders.len() == 3;
        tests::eventually(TIME_LIMIT, gone).await;
        let writer = queued(&others, others.lock("key").ttl(LONG).wait_forever()).await;
        assert_eq!(others.force_release("key").await.unwrap(), 3);
        for guard in &guards {
            within(Duration::from_secs(3), guard.lost()).await;
        }
        let writer = within(TIME_LIMIT, writer).await.unwrap();
        assert!(
            guards
                .iter()
                .all(|it| it.fencing_token() < writer.fencing_token())
        );
        drop((guards, fixed));
        settled(&locks).await;
        settled(&others).await;
        assert!(writer.is_held());
        release(writer).await;
    }
    assert_eq!(store.traces().await, [""; 0]);
}

async fn a_forced_release_of_a_free_lock_does_nothing(store: Store) {
    let locks = store.manager().await;
    let guard = locks.lock("other").ttl(LONG).acquire().await.unwrap();
    assert_eq!(locks.force_release("key").await.unwrap(), 0);
    take_turn(&locks, "key").await;
    assert_eq!(locks.force_release("key").await.unwrap(), 0);
    assert!(guard.is_held());
}

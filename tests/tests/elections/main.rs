//! Promise: one candidate leads at a time, under a larger fence than all before; observers see the leaders in that order.
//!
//! Section: guarantees.md#elections
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod changes;
mod observers;
mod on_redis_servers;
mod under_faults;

use std::future::pending;

use lock_runtime::{Leader, Leaders, Leadership, LockError, LockManager};
use tests::{
    LONG, SetnxServer, Store, TIME_LIMIT, connect, on_every_store, poll_once, release, take, waits,
    within,
};
use tokio::task::{JoinHandle, JoinSet};

on_every_store! {
    each_leader_is_seen_by_each_observer_once_and_in_order [fencing],
    an_observer_sees_the_leader_that_it_finds [fencing],
    candidates_of_one_manager_lead_under_their_own_names [fencing],
    a_leadership_that_is_dropped_ends [fencing],
    a_leader_whose_body_returns_resigns [fencing],
    a_leader_that_is_revoked_stops_before_it_leads_again [fencing force_release fair],
    a_candidate_that_is_dropped_does_not_lead [fencing],
    a_holder_that_is_no_candidate_is_not_shown [fencing],
    observers_end_with_their_manager [fencing],
}

const ELECTION: &str = "reports";

/// Stands for election in a task of its own.
fn campaign(locks: &LockManager, data: &str) -> JoinHandle<Leadership> {
    let candidate = locks.election(ELECTION).candidate(data).ttl(LONG);
    tokio::spawn(async move { candidate.campaign().await.expect("an answer at last") })
}

async fn leads(candidate: JoinHandle<Leadership>) -> Leadership {
    within(TIME_LIMIT, candidate).await.expect("no panic")
}

fn observe(locks: &LockManager) -> Leaders {
    locks.election(ELECTION).observe().expect("it has fences")
}

async fn next(leaders: &mut Leaders) -> Leader {
    let leader = within(TIME_LIMIT, leaders.next()).await;
    leader.expect("the manager lives")
}

/// It is seen as the leader that it is.
async fn sees(leaders: &mut Leaders, data: &str) -> Leader {
    let leader = next(leaders).await;
    assert_eq!(&*leader.data, data);
    assert_eq!(leader.process, Some(std::process::id()));
    assert!(leader.host.is_some());
    leader
}

async fn each_leader_is_seen_by_each_observer_once_and_in_order(store: Store) {
    let managers = [store.manager().await, store.manager().await];
    let [first, second] = &managers;
    let mut observers = [observe(first), observe(first), observe(second)];
    let mut last = None;
    let mut leadership = leads(campaign(first, "0")).await;
    for number in 1..=4 {
        let name = (number - 1).to_string();
        for leaders in &mut observers {
            let fence = sees(leaders, &name).await.fencing_token;
            assert!(fence <= leadership.fencing_token());
            assert!(last.is_none_or(|last| last < fence) || last == Some(fence));
        }
        last = Some(leadership.fencing_token());
        let follows = campaign(&managers[number % 2], &number.to_string());
        waits(first, ELECTION, 1).await;
        let before = leadership.fencing_token();
        leadership.resign();
        leadership = leads(follows).await;
        assert!(leadership.fencing_token() > before);
    }
    for leaders in &mut observers {
        sees(leaders, "4").await;
    }
    leadership.resign();
    for locks in &managers {
        within(TIME_LIMIT, locks.shutdown()).await;
    }
    for leaders in &mut observers {
        assert_eq!(within(TIME_LIMIT, leaders.next()).await, None);
    }
}

async fn an_observer_sees_the_leader_that_it_finds(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let leadership = leads(campaign(&locks, "10.0.0.7:80, \"grün\"\n100 %")).await;
    for observing in [&others, &locks, &others] {
        let leader = sees(&mut observe(observing), "10.0.0.7:80, \"grün\"\n100 %").await;
        assert!(leader.fencing_token <= leadership.fencing_token());
        assert!(leader.since.is_none_or(|it| it.elapsed().is_ok()));
    }
    leadership.resign();
}

/// Waiters of one manager are handed other locks under the name of the first of them.
async fn candidates_of_one_manager_lead_under_their_own_names(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let mut leaders = observe(&others);
    let mut leadership = leads(campaign(&others, "first")).await;
    sees(&mut leaders, "first").await;
    let mut candidates = JoinSet::new();
    for number in 1..=3 {
        let name = number.to_string();
        let candidate = campaign(&locks, &name);
        candidates.spawn(async { (name, leads(candidate).await) });
        waits(&others, ELECTION, number).await;
    }
    while !candidates.is_empty() {
        let before = leadership.fencing_token();
        leadership.resign();
        let next = within(TIME_LIMIT, candidates.join_next()).await;
        let (name, next) = next.unwrap().unwrap();
        leadership = next;
        assert!(leadership.fencing_token() > before);
        sees(&mut leaders, &name).await;
    }
    leadership.resign();
}

async fn a_leadership_that_is_dropped_ends(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let leadership = leads(campaign(&locks, "first")).await;
    let follows = campaign(&others, "second");
    waits(&others, ELECTION, 1).await;
    let status = within(TIME_LIMIT, others.status(ELECTION)).await.unwrap();
    let holder = &status.holders[0];
    assert_eq!(holder.function.as_deref(), Some("election"), "{holder:?}");
    let fence = leadership.fencing_token();
    drop(leadership);
    let leadership = leads(follows).await;
    assert!(leadership.fencing_token() > fence);
    leadership.resign();
}

async fn a_leader_whose_body_returns_resigns(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let candidate = locks.election(ELECTION).candidate("first").ttl(LONG);
    let led = candidate.run(async |leadership| {
        assert!(leadership.guard().is_held());
        let within = leadership.run(async { 7 }).await;
        (leadership.fencing_token(), within.unwrap())
    });
    let (fence, output) = within(TIME_LIMIT, led).await.unwrap();
    assert_eq!(output, 7);
    let leadership = leads(campaign(&others, "second")).await;
    assert!(leadership.fencing_token() > fence);
    leadership.resign();
}

async fn a_leader_that_is_revoked_stops_before_it_leads_again(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let mut leaders = observe(&others);
    let leadership = leads(campaign(&locks, "first")).await;
    let fence = sees(&mut leaders, "first").await.fencing_token;
    let follows = campaign(&others, "second");
    waits(&others, ELECTION, 1).await;
    let body = leadership.run(pending::<()>());
    let revoked = within(TIME_LIMIT, others.force_release(ELECTION)).await;
    assert_eq!(revoked.unwrap(), 1);
    let stopped = within(TIME_LIMIT, body).await;
    assert!(matches!(stopped, Err(LockError::Lost { .. })));
    within(TIME_LIMIT, leadership.lost()).await;
    let again = campaign(&locks, "first");
    let second = leads(follows).await;
    assert!(second.fencing_token() > leadership.fencing_token());
    let seen = sees(&mut leaders, "second").await.fencing_token;
    assert!(seen > fence);
    // Its end is not that of the leader who has come after it.
    drop(leadership);
    assert!(second.guard().is_held() && !again.is_finished());
    second.resign();
    leads(again).await.resign();
}

async fn a_candidate_that_is_dropped_does_not_lead(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let leadership = leads(campaign(&locks, "first")).await;
    let candidate = others.election(ELECTION).candidate("second").ttl(LONG);
    let mut withdrawn = Box::pin(candidate.campaign());
    assert!(poll_once(&mut withdrawn).await.is_pending());
    waits(&locks, ELECTION, 1).await;
    drop(withdrawn);
    waits(&locks, ELECTION, 0).await;
    leadership.resign();
    leads(campaign(&locks, "third")).await.resign();
}

async fn a_holder_that_is_no_candidate_is_not_shown(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = take(&locks, ELECTION, LONG).await;
    let mut leaders = observe(&others);
    assert!(poll_once(&mut Box::pin(leaders.next())).await.is_pending());
    let candidate = campaign(&others, "first");
    waits(&locks, ELECTION, 1).await;
    release(guard).await;
    let leadership = leads(candidate).await;
    sees(&mut leaders, "first").await;
    leadership.resign();
}

async fn observers_end_with_their_manager(store: Store) {
    let locks = store.manager().await;
    let (mut leaders, mut others) = (observe(&locks), observe(&locks));
    drop(locks);
    assert_eq!(within(TIME_LIMIT, leaders.next()).await, None);
    let locks = store.manager().await;
    let mut later = observe(&locks);
    within(TIME_LIMIT, locks.shutdown()).await;
    assert_eq!(within(TIME_LIMIT, later.next()).await, None);
    assert_eq!(within(TIME_LIMIT, others.next()).await, None);
    let after = locks.election(ELECTION).observe();
    assert_eq!(within(TIME_LIMIT, after.unwrap().next()).await, None);
    let refused = locks.election(ELECTION).candidate("late").campaign().await;
    assert!(matches!(refused, Err(LockError::ShutDown)), "{refused:?}");
}

#[tokio::test]
async fn a_store_without_fences_refuses_elections() {
    let store = Store::new(SetnxServer::start().await, &[]);
    let locks = store.manager().await;
    let candidate = locks.election(ELECTION).candidate("first").campaign();
    let errors = [
        within(TIME_LIMIT, candidate).await.unwrap_err(),
        locks.election(ELECTION).observe().unwrap_err(),
    ];
    for error in errors {
        let text = error.to_string();
        assert!(matches!(error, LockError::InvalidOptions { .. }), "{text}");
        assert!(text.contains("election"), "{text}");
    }
}

#[tokio::test]
async fn what_cannot_be_an_election_is_refused() {
    let locks = connect("memory:").await;
    let nameless = locks.election("").candidate("first").campaign().await;
    assert!(matches!(nameless, Err(LockError::InvalidKey { .. })));
    assert!(locks.election("").observe().is_err());
    for (bytes, fits) in [(1024, true), (1025, false)] {
        let candidate = locks.election(ELECTION).candidate("x".repeat(bytes));
        let led = candidate.campaign().await;
        assert_eq!(led.is_ok(), fits, "{led:?}");
    }
}

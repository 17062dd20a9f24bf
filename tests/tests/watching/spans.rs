//! The spans of whole acquisitions: children of the caller's, with what came of them.
//!
//! Section: guarantees.md#watching-a-lock

use std::future::pending;
use std::time::Duration;

use lock_runtime::{LockError, LockManager, current, distributed_lock};
use tests::{LONG, Store, TIME_LIMIT, on_every_store, poll_once, queued};
use tests::{release, unique, within};
use tracing::Instrument as _;

use crate::recorder::{Sighting, event, inside, record, spans};

/// The line of the attribute below.
const SELL: u32 = line!() + 2;

#[distributed_lock(key = "{name}", manager = locks)]
async fn sell(locks: &LockManager, name: &str) -> Result<u64, LockError> {
    tokio::task::yield_now().await;
    tracing::info!(target: "watching", key = name, "sold");
    Ok(current().map_or(0, |guard| guard.fencing_token().get()))
}

/// The one span of this name about a lock.
fn only(key: &str, name: &str) -> Sighting {
    let mut found = spans(key).into_iter().filter(|span| span.name == name);
    let span = found.next().expect("there is such a span");
    assert!(found.next().is_none(), "there is one");
    assert!(span.closed, "it has ended: {span:?}");
    span
}

async fn a_call_is_in_two_spans_of_its_caller(store: Store) {
    record();
    let locks = store.manager().await;
    let key = unique("spans");
    let call = sell(&locks, &key).instrument(tracing::info_span!(target: "watching", "order"));
    let fence = within(TIME_LIMIT, call).await.unwrap();
    for (name, outcome) in [("lock.wait", "granted"), ("lock.hold", "finished")] {
        let span = only(&key, name);
        assert_eq!(span.parent.as_deref(), Some("order"));
        assert_eq!(span.fields.get("lock.outcome"), Some(outcome));
        assert_eq!(span.fields.signed("lock.fencing_token"), fence);
        assert_eq!(span.fields.get("code.file.path"), Some(file!()));
        assert_eq!(span.fields.signed("code.line.number"), u64::from(SELL));
        assert_eq!(span.fields.get("lock.template"), Some("{name}"));
        let function = span.fields.get("code.function.name");
        assert_eq!(function, Some("watching::spans::sell"));
        assert_eq!(span.fields.get("otel.status_code"), None);
    }
    let sold = event(&key, "sold").await;
    assert_eq!(sold.parent.as_deref(), Some("lock.hold"));
}

async fn what_other_tasks_do_meanwhile_is_outside(store: Store) {
    record();
    let locks = store.manager().await;
    let key = unique("outside");
    let (request, line) = (locks.lock(&key), line!());
    let guard = within(TIME_LIMIT, request.ttl(LONG).acquire())
        .await
        .unwrap();
    let mut work = Box::pin(guard.hold(pending::<()>()));
    assert!(poll_once(&mut work).await.is_pending());
    assert_eq!(inside(), None);
    drop(work);
    let fields = only(&key, "lock.hold").fields;
    assert_eq!(fields.get("lock.outcome"), Some("cancelled"));
    assert_eq!(fields.get("code.file.path"), Some(file!()));
    assert_eq!(fields.signed("code.line.number"), u64::from(line));
    release(guard).await;
}

async fn a_refusal_is_an_error_of_the_span(store: Store) {
    record();
    let (locks, others) = (store.manager().await, store.manager().await);
    let key = unique("refusal");
    let held = within(TIME_LIMIT, locks.lock(format!("{key}-held")).acquire())
        .await
        .unwrap();
    let all = [key.clone(), format!("{key}-held")];
    let request = others.lock_all(&all).wait(Duration::from_millis(50));
    within(TIME_LIMIT, request.acquire()).await.unwrap_err();
    let span = only(&all.join(", "), "lock.wait");
    assert_eq!(span.fields.get("lock.outcome"), Some("contended"));
    assert_eq!(span.fields.get("error.type"), Some("contended"));
    assert_eq!(span.fields.get("otel.status_code"), Some("ERROR"));
    release(held).await;
}

async fn a_try_that_finds_the_lock_held_is_no_error_of_the_span(store: Store) {
    record();
    let (locks, others) = (store.manager().await, store.manager().await);
    let key = unique("tried");
    let held = within(TIME_LIMIT, locks.lock(&key).acquire())
        .await
        .unwrap();
    within(TIME_LIMIT, others.lock(&key).try_once().acquire())
        .await
        .unwrap_err();
    let outcomes = spans(&key).into_iter().map(|span| span.fields);
    let refused = outcomes.filter(|it| it.get("lock.outcome") == Some("contended"));
    let refused: Vec<_> = refused.collect();
    assert_eq!(refused.len(), 1);
    for field in ["error.type", "otel.status_code", "otel.status_description"] {
        assert_eq!(refused[0].get(field), None);
    }
    release(held).await;
}

async fn a_wait_that_is_given_up_is_cancelled(store: Store) {
    record();
    let (locks, others) = (store.manager().await, store.manager().await);
    let key = unique("given-up");
    let held = within(TIME_LIMIT, locks.lock(&key).ttl(LONG).acquire())
        .await
        .unwrap();
    let waiter = queued(&others, others.lock(&key)).await;
    drop(waiter);
    let cancelled = |span: &Sighting| span.fields.get("lock.outcome") == Some("cancelled");
    assert!(spans(&key).iter().any(cancelled));
    release(held).await;
}

async fn work_that_is_stopped_is_an_error_of_its_span(store: Store) {
    record();
    let (locks, others) = (store.manager().await, store.manager().await);
    let key = unique("stopped");
    let guard = within(TIME_LIMIT, locks.lock(&key).ttl(LONG).acquire())
        .await
        .unwrap();
    let work = guard.hold(pending::<()>());
    others.force_release(&key).await.unwrap();
    within(TIME_LIMIT, work).await.unwrap_err();
    let span = only(&key, "lock.hold");
    assert_eq!(span.fields.get("lock.outcome"), Some("lost"));
    assert_eq!(span.fields.get("otel.status_code"), Some("ERROR"));
    let stop = event(&key, "stop").await;
    assert_eq!(stop.parent.as_deref(), Some("lock.hold"));
}

on_every_store! {
    a_call_is_in_two_spans_of_its_caller,
    what_other_tasks_do_meanwhile_is_outside,
    a_refusal_is_an_error_of_the_span,
    a_try_that_finds_the_lock_held_is_no_error_of_the_span,
    a_wait_that_is_given_up_is_cancelled,
    work_that_is_stopped_is_an_error_of_its_span,
}

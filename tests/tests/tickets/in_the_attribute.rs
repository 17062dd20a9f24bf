//! `ticket = …` in the attribute.
//!
//! Section: guarantees.md#tickets

use lock_runtime::{FencingToken, LockError, LockManager, Ticket, distributed_lock};
use tests::{LONG, TIME_LIMIT, connect, release, take, unique, within};

struct Job {
    id: u32,
    ticket: Ticket,
}

#[distributed_lock(ticket = job.ticket, ttl = "1m", manager = locks, guard = lock)]
async fn work(locks: &LockManager, job: Job) -> Result<(u32, FencingToken), LockError> {
    Ok((job.id, lock.fencing_token()))
}

#[distributed_lock(ticket = ticket, on_error = |error| error.kind(), release = "confirmed")]
async fn of_the_installed_one(ticket: &Ticket) -> &'static str {
    "done"
}

async fn job(locks: &LockManager, id: u32) -> (Job, FencingToken) {
    let guard = take(locks, "job", LONG).await;
    let fence = guard.fencing_token();
    let ticket = guard.into_ticket(LONG).await.expect("it is held");
    (Job { id, ticket }, fence)
}

#[tokio::test]
async fn a_function_runs_under_the_lock_of_a_ticket() {
    let url = format!("memory:{}", unique("store"));
    let (locks, others) = (connect(&*url).await, connect(&*url).await);
    let (job, before) = job(&locks, 7).await;
    let ticket = job.ticket.clone();
    let (id, fence) = within(TIME_LIMIT, work(&others, job)).await.expect("valid");
    assert_eq!(id, 7);
    assert!(fence > before);
    let again = within(TIME_LIMIT, work(&others, Job { id, ticket })).await;
    assert!(matches!(again, Err(LockError::InvalidTicket { .. })));
    release(take(&locks, "job", LONG).await).await;
}

#[tokio::test]
async fn it_takes_the_manager_of_the_scope() {
    let locks = connect(format!("memory:{}", unique("store"))).await;
    let (job, _) = job(&locks, 1).await;
    let outcomes = locks.scope(async {
        let first = of_the_installed_one(&job.ticket).await;
        [first, of_the_installed_one(&job.ticket).await]
    });
    let outcomes = within(TIME_LIMIT, outcomes).await;
    assert_eq!(outcomes, ["done", "invalid_ticket"]);
}

//! Small helpers of every test: unique names, time limits, polls, and waiting for what sends no event.

use std::{
    fmt::Display,
    future::poll_fn,
    panic::Location,
    pin::Pin,
    process,
    sync::atomic::{AtomicU64, Ordering},
    task::Poll,
    time::{Duration, Instant},
};

use tokio::{
    runtime::Handle,
    task::spawn_blocking,
    time::{sleep, timeout},
};

use crate::woken::OnlyWoken;

/// No promise is about times as long as this: something hangs.
pub const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Longer than any test, so that no lease ends by itself.
pub const LONG: Duration = Duration::from_secs(60);

/// Longer than the time within which waiters on Redis may be served in another order.
pub const APART: Duration = Duration::from_millis(2);

/// How often what sends no event is looked at.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A name that no other test, and no other process, uses: `name` with a suffix.
pub fn unique(name: impl Display) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{name}-{}-{count}", process::id())
}

/// The future's output; panics with the caller's line when it takes longer than `limit`, or is never woken.
#[track_caller]
pub fn within<F: Future>(limit: Duration, future: F) -> impl Future<Output = F::Output> {
    let caller = Location::caller();
    async move {
        let outcome = timeout(limit, OnlyWoken::new(future)).await;
        outcome.unwrap_or_else(|_| panic!("{caller}: not done within {limit:?}"))
    }
}

/// Looks until `condition` is true; panics with the caller's line when that takes longer than `limit`.
///
/// For conditions that nothing announces, such as a key that disappears from a server.
#[track_caller]
pub fn eventually(limit: Duration, condition: impl AsyncFn() -> bool) -> impl Future<Output = ()> {
    let looking = async move {
        while !condition().await {
            sleep(LOOK_EVERY).await;
        }
    };
    within(limit, looking)
}

/// Polls a future once.
pub async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx))).await
}

/// How long a future takes, and its output.
pub async fn timed<F: Future>(future: F) -> (Duration, F::Output) {
    let start = Instant::now();
    let output = within(TIME_LIMIT, future).await;
    (start.elapsed(), output)
}

/// The middle one of many times: a busy machine prolongs a few of them, a broken promise prolongs most.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Takes turns until one is shorter than `limit`; panics when the fifth was not.
///
/// A busy machine delays a turn now and then, a broken promise delays each. A turn returns what it took.
#[track_caller]
pub fn one_turn_within(
    limit: Duration,
    turn: impl AsyncFn() -> Duration,
) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let mut times = Vec::new();
        while times.len() < 5 {
            let took = turn().await;
            if took < limit {
                return;
            }
            times.push(took);
        }
        panic!("{caller}: none within {limit:?}: {times:?}");
    }
}

/// Runs a future on a thread of its own, which it may block.
pub async fn aside<T: Send + 'static, F: Future<Output = T>>(
    future: impl FnOnce() -> F + Send + 'static,
) -> T {
    let runtime = Handle::current();
    let thread = spawn_blocking(move || runtime.block_on(future()));
    within(TIME_LIMIT, thread).await.expect("no panic")
}

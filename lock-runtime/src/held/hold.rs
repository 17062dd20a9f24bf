//! Runs a body only while its lock is surely held.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::held::body::{Slot, Work};
use crate::held::current;
use crate::held::lease::Lease;
use crate::held::running::Running;
use crate::telemetry::events;
use crate::telemetry::spans::Traced;
use crate::types::error::LockError;
use crate::types::fence::FencingToken;

pin_project! {
    /// The future of [`LockGuard::hold`](crate::LockGuard::hold).
    ///
    /// Reads the clock before every poll of the body. A timer would not do, since
    /// after a pause of the process the body may be polled before the timer is. The
    /// driver wakes it when the lease ends.
    #[must_use = "futures do nothing unless polled"]
    pub struct Hold<'g, F> {
        watched: Watched,
        #[pin]
        body: Option<F>,
        span: Traced,
        guard: PhantomData<&'g Lease>,
    }
}

impl<F: Future> Hold<'_, F> {
    #[inline]
    pub(crate) fn new(lease: &Arc<Lease>, body: F) -> Self {
        Self {
            watched: Watched::new(lease),
            body: Some(body),
            span: lease.traced(),
            guard: PhantomData,
        }
    }
}

impl<F: Future> Future for Hold<'_, F> {
    type Output = Result<F::Output, LockError>;

    /// # Panics
    ///
    /// If it is polled again after it has returned, as async functions do.
    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut body = Slot::new(this.body);
        ready!(this.watched.poll(this.span, cx, &mut body))?;
        Poll::Ready(Ok(body.output()))
    }
}

/// What runs a body under a lease. Removes the body's waker when it is dropped.
pub(crate) struct Watched {
    lease: Arc<Lease>,
    slot: Option<u64>,
    /// Whether the body was dropped since the lock was lost.
    stopped: bool,
}

impl Watched {
    pub(crate) fn new(lease: &Arc<Lease>) -> Self {
        Self {
            lease: Arc::clone(lease),
            slot: None,
            stopped: false,
        }
    }

    /// Polls the body, unless the lock is not surely held: drops it then.
    pub(crate) fn poll(
        &mut self,
        span: &mut Traced,
        cx: &mut Context<'_>,
        body: &mut dyn Work,
    ) -> Poll<Result<(), LockError>> {
        let Self {
            lease,
            slot,
            stopped,
        } = self;
        // Until the end of this function.
        let _running = Running::begin(lease);
        if stop(lease, stopped, span, body) {
            return Poll::Ready(Err(lost(lease, span)));
        }
        let entered = (span.enter(), current::enter(lease));
        let finished = body.poll(cx);
        drop(entered);
        if finished {
            body.drop();
            lease.unwatch(slot.take());
            finish(lease, span);
            return Poll::Ready(Ok(()));
        }
        lease.watch_for_body(slot, cx.waker());
        if stop(lease, stopped, span, body) {
            // It ended before the waker was known. Reported by the next poll, so that of nested
            // bodies the outermost reports it.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.lease.unwatch(self.slot);
    }
}

/// Drops the body if the lock is not surely held; whether that is so.
fn stop(lease: &Lease, stopped: &mut bool, span: &Traced, body: &mut dyn Work) -> bool {
    if let Some(lost) = lease.first_lost().filter(|_| !*stopped) {
        *stopped = true;
        let entered = span.enter();
        body.drop();
        lease.stopped();
        events::stopped(&lost.terms, lost.fence, lost.age());
        drop(entered);
    }
    *stopped
}

/// Why a body was stopped.
fn lost(lease: &Lease, span: &mut Traced) -> LockError {
    let lost = lease.first_lost().unwrap_or(lease);
    let error = LockError::Lost {
        key: lost.terms.key.clone(),
        fencing_token: FencingToken::new(lease.fence),
    };
    span.fails(&error);
    error
}

/// A body has finished.
fn finish(lease: &Lease, span: &mut Traced) {
    if lease.is_held() {
        span.ends("finished");
    } else {
        // The end of the lease may have counted it as stopped.
        lease.unstopped();
        let entered = span.enter();
        events::overran(&lease.terms, lease.fence, lease.age());
        drop(entered);
        span.ends("overrun");
    }
}

impl<F> fmt::Debug for Hold<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.watched.lease.describe(f, "Hold")
    }
}

pin_project! {
    /// The future of [`LockGuard::hold_unstopped`](crate::LockGuard::hold_unstopped).
    #[must_use = "futures do nothing unless polled"]
    pub struct HoldUnstopped<'g, F> {
        lease: &'g Arc<Lease>,
        #[pin]
        body: Option<F>,
        span: Traced,
    }
}

impl<F> fmt::Debug for HoldUnstopped<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lease.describe(f, "HoldUnstopped")
    }
}

impl<'g, F: Future> HoldUnstopped<'g, F> {
    #[inline]
    pub(crate) fn new(lease: &'g Arc<Lease>, body: F) -> Self {
        Self {
            lease,
            body: Some(body),
            span: lease.traced(),
        }
    }
}

impl<F: Future> Future for HoldUnstopped<'_, F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut body = Slot::new(this.body);
        ready!(poll_unstopped(this.lease, this.span, cx, &mut body));
        Poll::Ready(body.output())
    }
}

/// Polls the body whatever becomes of the lock.
fn poll_unstopped(
    lease: &Arc<Lease>,
    span: &mut Traced,
    cx: &mut Context<'_>,
    body: &mut dyn Work,
) -> Poll<()> {
    current::acts_under(lease);
    let entered = (span.enter(), current::enter(lease));
    let finished = body.poll(cx);
    drop(entered);
    if !finished {
        return Poll::Pending;
    }
    if span.is_listened_to() {
        span.ends(if lease.is_held() { "finished" } else { "lost" });
    }
    Poll::Ready(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, poll_fn};
    use std::task::Waker;
    use std::time::Duration;

    use super::*;
    use crate::base::clock::Clock;
    use crate::base::wakes::Wakes;
    use crate::held::home::Nowhere;
    use crate::held::lease::InUse;
    use crate::types::deadline::deadline;
    use crate::types::terms::{LeaseId, Terms};

    const TTL: Duration = Duration::from_secs(10);

    fn lease(clock: &Clock) -> Arc<Lease> {
        let terms = Terms::of(LeaseId(1), "k", TTL);
        let ends = deadline(clock.now(), TTL);
        let home = Arc::new(Nowhere);
        Arc::new(Lease::new(
            terms.into(),
            1,
            clock.now(),
            ends,
            clock.clone(),
            home,
        ))
    }

    fn poll<F: Future>(future: Pin<&mut F>, waker: &Arc<Wakes>) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(waker));
        future.poll(&mut Context::from_waker(&waker))
    }

    #[test]
    fn the_clock_is_read_before_the_body_is_polled() {
        let clock = Clock::manual();
        let lease = lease(&clock);
        let (polls, waker) = (Cell::new(0), Arc::default());
        let body = poll_fn(|_| {
            polls.set(polls.get() + 1);
            Poll::<()>::Pending
        });
        let mut hold = std::pin::pin!(Hold::new(&lease, body));
        assert!(poll(hold.as_mut(), &waker).is_pending());
        clock.advance(TTL);
        let lost = poll(hold.as_mut(), &waker);
        assert!(matches!(lost, Poll::Ready(Err(LockError::Lost { .. }))));
        assert_eq!(polls.get(), 1);
    }

    #[test]
    fn the_body_is_dropped_before_the_loss_is_reported() {
        struct Dropped<'a>(&'a Cell<bool>);
        impl Drop for Dropped<'_> {
            fn drop(&mut self) {
                self.0.set(true);
            }
        }

        let clock = Clock::manual();
        let lease = lease(&clock);
        let (dropped, waker) = (Cell::new(false), Arc::default());
        let witness = Dropped(&dropped);
        let mut hold = std::pin::pin!(Hold::new(&lease, async {
            let _witness = witness;
            pending::<()>().await;
        }));
        assert!(poll(hold.as_mut(), &waker).is_pending());
        lease.end();
        assert!(poll(hold.as_mut(), &waker).is_ready());
        assert!(dropped.get());
    }

    #[test]
    fn the_end_of_the_lease_wakes_whoever_polled_last() {
        let lease = lease(&Clock::manual());
        let (first, last) = (Arc::<Wakes>::default(), Arc::<Wakes>::default());
        let mut hold = std::pin::pin!(Hold::new(&lease, pending::<()>()));
        assert!(poll(hold.as_mut(), &first).is_pending());
        assert!(poll(hold.as_mut(), &last).is_pending());
        assert_eq!(last.count(), 0, "nothing has happened");
        lease.end();
        assert_eq!(first.count(), 0);
        assert_eq!(last.count(), 1);
    }

    #[test]
    fn nobody_is_woken_for_a_future_that_was_dropped() {
        let lease = lease(&Clock::manual());
        let waker = Arc::<Wakes>::default();
        let mut hold = Box::pin(Hold::new(&lease, pending::<()>()));
        assert!(poll(hold.as_mut(), &waker).is_pending());
        drop(hold);
        lease.end();
        assert_eq!(waker.count(), 0);
    }

    #[test]
    fn a_lease_that_ends_within_the_poll_is_noticed() {
        let clock = Clock::manual();
        let lease = lease(&clock);
        lease.arrive();
        let waker = Arc::<Wakes>::default();
        let mut hold = std::pin::pin!(Hold::new(
            &lease,
            poll_fn(|_| {
                clock.advance(TTL);
                Poll::<()>::Pending
            })
        ));
        assert!(poll(hold.as_mut(), &waker).is_pending());
        assert_eq!(waker.count(), 1, "it asks to be polled");
        assert_eq!(lease.in_use(), InUse::No, "the body is dropped already");
        let lost = poll(hold.as_mut(), &waker);
        assert!(matches!(lost, Poll::Ready(Err(LockError::Lost { .. }))));
    }

    #[test]
    fn what_a_body_returns_is_returned_even_after_the_deadline() {
        let clock = Clock::manual();
        let lease = lease(&clock);
        let waker = Arc::default();
        let mut hold = std::pin::pin!(Hold::new(&lease, async {
            clock.advance(TTL);
            7
        }));
        assert!(matches!(poll(hold.as_mut(), &waker), Poll::Ready(Ok(7))));
    }
}

//! The future of an annotated function: takes the lock, and runs the body under it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::api::acquire::Acquire;
use crate::held::body::{Body, Slot, Work, polled_again};
use crate::held::guard::LockGuard;
use crate::held::hold::Watched;
use crate::telemetry::spans::Traced;
use crate::types::error::LockError;

pin_project! {
    /// Takes a lock and runs a body under it; gives out the guard and what the body has returned.
    #[must_use = "futures do nothing unless polled"]
    pub struct Locked<F> {
        // They are dropped in this order.
        progress: Progress,
        #[pin]
        body: Option<F>,
        held: Held,
    }
}

/// What ends before the body does.
enum Progress {
    Asking(Acquire),
    Holding(Watched),
    Ended,
}

/// What ends after the body.
#[derive(Default)]
struct Held {
    span: Traced,
    guard: Option<LockGuard>,
}

impl<F: Future> Locked<F> {
    pub(crate) fn new(request: Acquire, body: F) -> Self {
        Self {
            progress: Progress::Asking(request),
            body: Some(body),
            held: Held::default(),
        }
    }
}

impl<F: Future> Future for Locked<F> {
    type Output = Result<(LockGuard, F::Output), LockError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        poll(this.progress, this.held, cx, this.body)
    }
}

/// Not compiled for each body, but for each type of output.
#[inline(never)]
fn poll<T>(
    progress: &mut Progress,
    held: &mut Held,
    cx: &mut Context<'_>,
    body: Pin<&mut dyn Body<T>>,
) -> Poll<Result<(LockGuard, T), LockError>> {
    let mut body = Slot::new(body);
    let guard = ready!(progress.poll(held, cx, &mut body))?;
    Poll::Ready(Ok((guard, body.output())))
}

impl Progress {
    fn poll(
        &mut self,
        held: &mut Held,
        cx: &mut Context<'_>,
        body: &mut dyn Work,
    ) -> Poll<Result<LockGuard, LockError>> {
        if let Self::Asking(request) = self {
            let guard = ready!(Pin::new(request).poll(cx));
            let guard = guard.inspect_err(|_| body.drop())?;
            held.span = guard.lease().traced();
            *self = Self::Holding(Watched::new(guard.lease()));
            held.guard = Some(guard);
        }
        let Self::Holding(watched) = self else {
            polled_again()
        };
        let ended = ready!(watched.poll(&mut held.span, cx, body));
        *self = Self::Ended;
        let guard = held.guard.take().unwrap_or_else(|| polled_again());
        Poll::Ready(ended.map(|()| guard))
    }
}

impl<F> fmt::Debug for Locked<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locked").finish_non_exhaustive()
    }
}

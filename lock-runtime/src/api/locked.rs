//! The futures of an annotated function: they take the lock, and run the body under it.
//!
//! What is generic over the body only passes it on, and is inlined: otherwise the compiler would put it apart from
//! the function that awaits it, and optimize the body in both places.

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
        #[pin]
        body: Option<F>,
        call: Call,
    }
}

impl<F: Future> Locked<F> {
    #[inline]
    pub(crate) fn new(request: Acquire, body: F) -> Self {
        Self {
            body: Some(body),
            call: Call::new(request),
        }
    }
}

impl<F: Future> Future for Locked<F> {
    type Output = Result<(LockGuard, F::Output), LockError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        run(this.call, cx, this.body)
    }
}

pin_project! {
    /// The same, and releases the lock; gives out what the body has returned, or what `failure` makes of an error.
    #[must_use = "futures do nothing unless polled"]
    pub struct Released<F>
    where
        F: Future,
    {
        // They are dropped in this order.
        #[pin]
        body: Option<F>,
        call: Call,
        failure: fn(LockError) -> F::Output,
    }
}

impl<F: Future> Released<F> {
    #[inline]
    pub(crate) fn new(request: Acquire, body: F, failure: fn(LockError) -> F::Output) -> Self {
        Self {
            body: Some(body),
            call: Call::new(request),
            failure,
        }
    }
}

impl<F: Future> Future for Released<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        run_and_release(this.call, cx, this.body, *this.failure)
    }
}

/// Not compiled for each body, but for each type of output.
#[inline(never)]
fn run<T>(
    call: &mut Call,
    cx: &mut Context<'_>,
    body: Pin<&mut dyn Body<T>>,
) -> Poll<Result<(LockGuard, T), LockError>> {
    let mut body = Slot::new(body);
    let guard = ready!(call.poll(cx, &mut body))?;
    Poll::Ready(Ok((guard, body.output())))
}

/// As above.
#[inline(never)]
fn run_and_release<T>(
    call: &mut Call,
    cx: &mut Context<'_>,
    body: Pin<&mut dyn Body<T>>,
    failure: fn(LockError) -> T,
) -> Poll<T> {
    let mut body = Slot::new(body);
    Poll::Ready(match ready!(call.poll(cx, &mut body)) {
        Ok(guard) => {
            guard.release();
            body.output()
        }
        Err(error) => failure(error),
    })
}

/// A call of an annotated function, whatever its body.
struct Call {
    // They are dropped in this order.
    progress: Progress,
    span: Traced,
    guard: Option<LockGuard>,
}

enum Progress {
    Asking(Acquire),
    Holding(Watched),
    Ended,
}

impl Call {
    #[inline]
    fn new(request: Acquire) -> Self {
        Self {
            progress: Progress::Asking(request),
            span: Traced::none(),
            guard: None,
        }
    }

    /// Drops the body before it returns what is not pending.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut dyn Work,
    ) -> Poll<Result<LockGuard, LockError>> {
        if let Progress::Asking(request) = &mut self.progress {
            let guard = ready!(Pin::new(request).poll(cx));
            let guard = guard.inspect_err(|_| body.drop())?;
            self.span = guard.lease().traced();
            self.progress = Progress::Holding(Watched::new(guard.lease()));
            self.guard = Some(guard);
        }
        let Progress::Holding(watched) = &mut self.progress else {
            polled_again()
        };
        let ended = ready!(watched.poll(&mut self.span, cx, body));
        self.progress = Progress::Ended;
        let guard = self.guard.take().unwrap_or_else(|| polled_again());
        Poll::Ready(ended.map(|()| guard))
    }
}

impl<F> fmt::Debug for Locked<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locked").finish_non_exhaustive()
    }
}

impl<F: Future> fmt::Debug for Released<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Released").finish_non_exhaustive()
    }
}

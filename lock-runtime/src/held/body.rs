//! A body as what runs it sees it: behind a pointer, so that the rest is compiled once and not for each body.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Work that runs under a lock, whatever its type: what is compiled for each.
pub(crate) trait Body<T> {
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T>;

    /// Drops it, unless that has happened.
    fn drop(self: Pin<&mut Self>);
}

impl<F: Future> Body<F::Output> for Option<F> {
    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.as_pin_mut() {
            Some(body) => body.poll(cx),
            None => polled_again(),
        }
    }

    #[inline]
    fn drop(mut self: Pin<&mut Self>) {
        self.set(None);
    }
}

/// The same whatever its output, too.
pub(crate) trait Work {
    /// Polls it once; whether it has finished.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool;

    /// Drops it, unless that has happened.
    fn drop(&mut self);
}

/// A body, and its output once it has finished: what is compiled for each type of output.
pub(crate) struct Slot<'b, T> {
    body: Pin<&'b mut (dyn Body<T> + 'b)>,
    output: Option<T>,
}

impl<'b, T> Slot<'b, T> {
    pub(crate) fn new(body: Pin<&'b mut (dyn Body<T> + 'b)>) -> Self {
        Self { body, output: None }
    }

    /// The output of a body that has finished.
    pub(crate) fn output(self) -> T {
        self.output.unwrap_or_else(|| polled_again())
    }
}

impl<T> Work for Slot<'_, T> {
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        match self.body.as_mut().poll(cx) {
            Poll::Ready(output) => self.output = Some(output),
            Poll::Pending => return false,
        }
        true
    }

    fn drop(&mut self) {
        self.body.as_mut().drop();
    }
}

/// As async functions do.
#[cold]
pub(crate) fn polled_again() -> ! {
    panic!("a future is not polled after it has returned")
}

//! Everything in flight, one turn at a time: the engine takes in what callers want and what the backend has
//! to say, decides, and sends.

use std::task::{Context, Poll};

use tokio::sync::mpsc;

use super::op::Op;
use super::operations::Operations;
use crate::backend::Backend;
use crate::base::clock::{Clock, Sleep};
#[cfg(feature = "metrics")]
use crate::vocabulary::metrics;

/// How many operations or answers are taken in at once.
const BATCH: usize = 1024;

/// Everything that the manager has in flight.
pub(super) struct Engine {
    inbox: mpsc::UnboundedReceiver<Op>,
    backend: Box<dyn Backend>,
    operations: Operations,
    clock: Clock,
    sleep: Sleep,
    /// Whether there may be more in the mailbox.
    open: bool,
}

impl Engine {
    pub(super) fn new(
        inbox: mpsc::UnboundedReceiver<Op>,
        backend: Box<dyn Backend>,
        operations: Operations,
        clock: Clock,
    ) -> Self {
        Self {
            inbox,
            backend,
            operations,
            clock,
            sleep: Sleep::default(),
            open: true,
        }
    }

    /// Does all there is to do. Whatever brings more wakes `cx`, also where it
    /// has come already.
    pub(super) fn turn(&mut self, cx: &mut Context<'_>) {
        #[cfg(feature = "metrics")]
        let _turn = metrics::Turn::begin(self.inbox.len());
        let mut all = self.take(cx);
        loop {
            self.submit();
            all &= self.settle(cx);
            self.operations.tick(self.clock.now());
            if !self.operations.has_requests() {
                break;
            }
        }
        self.operations.deliver();
        let wakeup = self.operations.next_wakeup();
        if !all || self.sleep.poll_until(cx, &self.clock, wakeup).is_ready() {
            cx.waker().wake_by_ref();
        }
    }

    /// Nothing is on its way to the backend.
    pub(super) fn is_quiet(&self) -> bool {
        self.backend.is_quiet()
    }

    /// No more will come, or be taken.
    pub(super) fn is_over(&self) -> bool {
        !self.open || self.operations.has_shut_down()
    }

    /// Nothing is held, asked for or being released.
    pub(super) fn is_idle(&self) -> bool {
        self.operations.is_idle()
    }

    /// Takes in what the callers want; `false` where there may be more of it.
    fn take(&mut self, cx: &mut Context<'_>) -> bool {
        let now = self.clock.now();
        for _ in 0..BATCH {
            match self.inbox.poll_recv(cx) {
                Poll::Ready(Some(op)) => self.operations.take(now, op),
                Poll::Ready(None) => {
                    self.open = false;
                    return true;
                }
                Poll::Pending => return true,
            }
        }
        false
    }

    /// Sends what was submitted, and takes in what has been answered; `false`
    /// where there may be more of it.
    fn settle(&mut self, cx: &mut Context<'_>) -> bool {
        for _ in 0..BATCH {
            match self.backend.poll_outcome(cx) {
                Poll::Ready(outcome) => self.operations.settle(self.clock.now(), outcome),
                Poll::Pending => return true,
            }
        }
        false
    }

    fn submit(&mut self) {
        let now = self.clock.now();
        for request in self.operations.requests() {
            self.backend.submit(now, request);
        }
    }
}

//! The engine: in each turn it takes in the operations of callers and the outcomes
//! of the backend, decides, and sends.

use std::task::{Context, Poll};

use tokio::sync::mpsc;

use super::delivery::Pile;
use super::op::Op;
use super::operations::Operations;
use crate::backend::Backend;
use crate::base::clock::{Clock, Sleep};
#[cfg(feature = "metrics")]
use crate::telemetry::metrics;

/// How many operations or outcomes one turn takes in.
const AT_ONCE: usize = 1024;

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

    /// Does everything that is to be done now. `cx` is woken when there is more.
    pub(super) fn turn(&mut self, cx: &mut Context<'_>, pile: &Pile) {
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
        self.operations.deliver(pile);
        let wakeup = self.operations.next_wakeup();
        if !all || self.sleep.poll_until(cx, &self.clock, wakeup).is_ready() {
            cx.waker().wake_by_ref();
        }
    }

    /// Nothing is in flight.
    pub(super) fn is_quiet(&self) -> bool {
        self.backend.is_quiet()
    }

    /// Nobody waits for a lock to be granted or released, and one is being released.
    pub(super) fn is_unawaited(&self) -> bool {
        self.operations.is_unawaited()
    }

    /// Somebody waits for one lock to be granted or released, and nobody for anything more.
    pub(super) fn is_about_one(&self) -> bool {
        self.operations.is_about_one()
    }

    /// Marks of the keys whose operations are mostly done at once.
    pub(super) fn chained_keys(&self) -> u64 {
        self.backend.chained_keys()
    }

    /// No operation is in the mailbox, nor being put there.
    #[cfg(feature = "testing")]
    pub(super) fn has_taken_all(&self) -> bool {
        self.inbox.is_empty()
    }

    /// No more operations will come, or be accepted.
    pub(super) fn is_over(&self) -> bool {
        !self.open || self.operations.has_shut_down()
    }

    /// Nothing is held, asked for or being released.
    pub(super) fn is_idle(&self) -> bool {
        self.operations.is_idle()
    }

    /// Takes in operations; `false` if there may be more of them.
    fn take(&mut self, cx: &mut Context<'_>) -> bool {
        let now = self.clock.now();
        for _ in 0..AT_ONCE {
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

    /// Sends what was submitted, and takes in outcomes; `false` if there may be more
    /// of them.
    fn settle(&mut self, cx: &mut Context<'_>) -> bool {
        for _ in 0..AT_ONCE {
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

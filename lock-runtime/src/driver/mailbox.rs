//! Where callers leave what they want; where nothing else is on its way they
//! drive it themselves for a turn.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc;

use super::Op;
use super::wheel::{self, Wheel};

/// A caller's end of the driver, which works on until the last one is dropped.
#[derive(Clone)]
pub(crate) struct Mailbox(Arc<Inner>);

struct Inner {
    ops: mpsc::UnboundedSender<Op>,
    wheel: Arc<Wheel>,
}

/// Does not keep the driver at work.
#[derive(Clone)]
pub(crate) struct WeakMailbox(Weak<Inner>);

/// The driver has ended; what was sent is dropped.
#[derive(Debug)]
pub(crate) struct Closed;

impl Mailbox {
    pub(super) fn new(ops: mpsc::UnboundedSender<Op>, wheel: Arc<Wheel>) -> Self {
        Self(Arc::new(Inner { ops, wheel }))
    }

    /// One that nobody drives.
    #[cfg(test)]
    pub(crate) fn alone() -> (Self, mpsc::UnboundedReceiver<Op>) {
        let (ops, inbox) = mpsc::unbounded_channel();
        let wheel = Arc::new(Wheel::new(None));
        (Self::new(ops, wheel), inbox)
    }

    /// For what is called, and not merely dropped: it may be done on this
    /// thread, with the answers of others.
    pub(crate) fn send(&self, op: Op) -> Result<(), Closed> {
        // Before it is sent, so that nobody is woken for it.
        let turn = self.0.wheel.take_over();
        let sent = self.0.ops.send(op);
        if let Some(turn) = turn {
            turn.drive();
        }
        sent.map_err(|_| Closed)
    }

    /// Leaves it to the driver's thread. A destructor may run where nothing of
    /// what others have registered may be called any more.
    pub(crate) fn post(&self, op: Op) {
        let _ = self.0.ops.send(op);
    }

    /// Waits until the releases that were handed in have been done, for so long at
    /// the most; not on a thread that drives, which has to do them.
    pub(crate) fn flush(&self, at_most: Duration) {
        if !wheel::is_driving() {
            let (answer, done) = std::sync::mpsc::channel();
            self.post(Op::Flush(answer));
            let _ = done.recv_timeout(at_most);
        }
    }

    pub(crate) fn downgrade(&self) -> WeakMailbox {
        WeakMailbox(Arc::downgrade(&self.0))
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl WeakMailbox {
    pub(crate) fn upgrade(&self) -> Option<Mailbox> {
        self.0.upgrade().map(Mailbox)
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mailbox")
    }
}

//! The mailbox for operations. A caller that finds no awaited operation in flight
//! polls the engine itself, once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;
#[cfg(feature = "testing")]
use std::time::Instant;

use tokio::sync::mpsc;

use super::at_work::is_at_work;
use super::op::Op;
use super::polling::{CallerTurn, SharedEngine};
use crate::backend::capabilities::Capabilities;
use crate::held::home::Home;
use crate::types::answer::Answer;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::terms::{LeaseId, Terms};
use crate::types::ticket_id::TicketId;

/// The callers' end of the driver, which works on until the last handle to it is
/// dropped.
pub(crate) struct Mailbox {
    ops: mpsc::UnboundedSender<Op>,
    engine: Arc<SharedEngine>,
    poller: Poller,
    capabilities: Capabilities,
    /// The store's name in errors.
    pub(crate) server: Arc<str>,
}

/// The thread that polls the engine when no caller does.
#[derive(Clone, Copy)]
pub(super) enum Poller {
    Thread,
    /// A task, perhaps on the very thread that would wait for it.
    #[cfg(feature = "testing")]
    Task,
}

impl Poller {
    fn is_thread(self) -> bool {
        matches!(self, Self::Thread)
    }
}

/// The driver has ended; the operation is dropped.
#[derive(Debug)]
pub(crate) struct Closed;

impl Mailbox {
    pub(super) fn new(
        ops: mpsc::UnboundedSender<Op>,
        engine: Arc<SharedEngine>,
        poller: Poller,
        capabilities: Capabilities,
        server: Arc<str>,
    ) -> Self {
        Self {
            ops,
            engine,
            poller,
            capabilities,
            server,
        }
    }

    /// One that nobody reads.
    #[cfg(all(test, feature = "redis"))]
    pub(crate) fn alone() -> (Self, mpsc::UnboundedReceiver<Op>) {
        let (ops, inbox) = mpsc::unbounded_channel();
        let engine = Arc::new(SharedEngine::new(None));
        (
            Self::new(
                ops,
                engine,
                Poller::Thread,
                Capabilities::all("nothing"),
                "nobody".into(),
            ),
            inbox,
        )
    }

    /// Sends an operation that the caller has asked for. It may be done on this thread,
    /// together with operations of others.
    pub(crate) fn send(&self, op: Op) -> Result<(), Closed> {
        self.send_about(None, op).map(drop)
    }

    /// The same, if it is about this key. Returns whether it was done on this thread and
    /// the key's lock is handed over within this process.
    pub(crate) fn send_about(&self, key: Option<&LockKey>, op: Op) -> Result<bool, Closed> {
        // Before it is sent, so that nobody is woken for it.
        let turn = self.engine.caller_turn(key);
        let hands_over = turn.as_ref().is_some_and(CallerTurn::hands_over);
        let is_awaited = op.is_awaited() && self.poller.is_thread();
        let sent = self.ops.send(op);
        if let Some(turn) = turn {
            turn.poll(is_awaited);
        }
        sent.map(|()| hands_over).map_err(|_| Closed)
    }

    /// Leaves the operation to the driver's thread. A destructor may run where wakers of
    /// others must not be called any more.
    pub(crate) fn post(&self, op: Op) {
        let _ = self.ops.send(op);
    }

    /// Whether a blocked thread may be the one that would carry its operations out.
    pub(crate) fn may_be_blocked(&self) -> bool {
        !self.poller.is_thread()
    }

    /// Waits until all releases sent so far are done, for at most this long; where the poller is
    /// a task, until they are sent. It returns at once on a thread that polls the engine, since
    /// that thread has to do them, and within the poll of a caller that delivers answers, since
    /// it would hold up that caller.
    pub(crate) fn flush(&self, at_most: Duration) {
        if !is_at_work() {
            match self.poller {
                Poller::Thread => {
                    let (answer, done) = std::sync::mpsc::channel();
                    self.post(Op::Flush(answer));
                    let _ = done.recv_timeout(at_most);
                }
                #[cfg(feature = "testing")]
                Poller::Task => {
                    let begun = Instant::now();
                    while !self.engine.poll_here() && begun.elapsed() < at_most {
                        std::thread::yield_now();
                    }
                }
            }
        }
    }
}

impl Home for Mailbox {
    fn release(&self, id: LeaseId, key: &LockKey, answer: Option<Answer<bool>>) -> bool {
        let sent = self.send_about(Some(key), Op::Release { id, answer });
        // The driver outlives every lease. If it is gone all the same, the ttl frees the
        // lock.
        sent.unwrap_or(false)
    }

    fn release_from_destructor(&self, id: LeaseId) {
        self.post(Op::Release { id, answer: None });
    }

    fn issue(&self, id: LeaseId, ticket: TicketId, time: Duration, answer: Answer<bool>) {
        let op = Op::Issue {
            id,
            ticket,
            time,
            answer,
        };
        // A mailbox that is closed drops the answer, which is one.
        let _ = self.send(op);
    }

    fn downgrade(&self, id: LeaseId, answer: Answer<bool>) {
        // A mailbox that is closed drops the answer, which is one.
        let _ = self.send(Op::Downgrade { id, answer });
    }

    fn name(&self, key: LockKey) -> Result<LockKey, LockError> {
        self.capabilities.name(key)
    }

    fn check_downgrade(&self) -> Result<(), LockError> {
        if self.capabilities.downgrade {
            return Ok(());
        }
        Err(self.capabilities.lacks_downgrade())
    }

    fn check_tickets(&self) -> Result<(), LockError> {
        if self.capabilities.tickets {
            return Ok(());
        }
        Err(self.capabilities.lacks("ticket"))
    }

    fn take_back(&self, terms: Arc<Terms>) {
        self.post(Op::TakeBack(terms));
    }

    fn poll_returned(&self, id: LeaseId) {
        self.post(Op::PollReturned(id));
    }

    fn help_to_deliver(&self) {
        self.engine.help_to_deliver();
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mailbox")
    }
}

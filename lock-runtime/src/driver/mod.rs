//! The thread that owns the backend and every operation in flight, so that a
//! body that blocks its runtime does not starve the renewals and a caller that
//! is cancelled does not cancel the protocol.

mod operations;
#[cfg(all(test, feature = "redis"))]
mod simulation;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::backend::{self, Backend};
use crate::clock::{Clock, Sleep};
use crate::config::LockConfig;
use crate::error::LockError;
use crate::guard::LockGuard;
use crate::query::Query;
use crate::terms::{LeaseId, Terms};

use operations::Operations;

/// How long the thread goes on to deliver releases when nobody has a handle to
/// it any more.
const LAST_RELEASES: Duration = Duration::from_secs(5);

/// How many operations are taken in before they are sent.
const BATCH: usize = 1024;

/// Where the answer to a caller goes.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, LockError>>;

/// What callers put into the driver's mailbox.
#[derive(Debug)]
pub(crate) enum Op {
    Acquire {
        terms: Arc<Terms>,
        reply: Answer<LockGuard>,
    },
    /// The future of this acquisition was dropped.
    Cancel(LeaseId),
    Release {
        id: LeaseId,
        answer: Option<Answer<bool>>,
    },
    Query(Query),
    /// Answered when every release that was handed in before it has been done.
    Flush(std::sync::mpsc::Sender<()>),
    /// Answered when no lock is held and every release has been done.
    ShutDown(oneshot::Sender<()>),
}

/// Starts the driver's thread; returns its mailbox once the backend is
/// connected.
pub(crate) async fn start(config: LockConfig) -> Result<mpsc::UnboundedSender<Op>, LockError> {
    let (mailbox, inbox) = mpsc::unbounded_channel();
    let (ready, connected) = oneshot::channel();
    let callers = mailbox.downgrade();
    thread::Builder::new()
        .name("lock-driver".into())
        .spawn(move || run(config, inbox, callers, ready))
        .map_err(LockError::unavailable)?;
    connected.await.unwrap_or(Err(LockError::ShutDown))?;
    Ok(mailbox)
}

fn run(
    config: LockConfig,
    inbox: mpsc::UnboundedReceiver<Op>,
    callers: mpsc::WeakUnboundedSender<Op>,
    ready: Answer<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = ready.send(Err(LockError::unavailable(error)));
            return;
        }
    };
    runtime.block_on(async move {
        match backend::connect(&config).await {
            Ok(backend) => {
                let _ = ready.send(Ok(()));
                let clock = config.clock.clone();
                let driver = Driver {
                    inbox,
                    backend,
                    operations: Operations::new(config, callers),
                    clock,
                    sleep: Sleep::default(),
                };
                driver.run().await;
            }
            Err(error) => {
                let _ = ready.send(Err(error));
            }
        }
    });
}

struct Driver {
    inbox: mpsc::UnboundedReceiver<Op>,
    backend: Box<dyn Backend>,
    operations: Operations,
    clock: Clock,
    sleep: Sleep,
}

impl Driver {
    async fn run(mut self) {
        while self.turn().await {}
        let _ = tokio::time::timeout(LAST_RELEASES, async {
            while !self.operations.is_idle() {
                self.turn().await;
            }
        })
        .await;
    }

    /// Waits until there is something to do and does all there is; `false` once
    /// the mailbox is closed or the manager has shut down.
    async fn turn(&mut self) -> bool {
        let wakeup = self.operations.next_wakeup();
        let mut open = true;
        tokio::select! {
            biased;
            outcome = poll_fn(|cx| self.backend.poll_outcome(cx)) => {
                self.operations.settle(self.clock.now(), outcome);
            }
            op = self.inbox.recv(), if !self.inbox.is_closed() || !self.inbox.is_empty() => match op {
                Some(op) => self.operations.take(self.clock.now(), op),
                None => open = false,
            },
            () = poll_fn(|cx| self.sleep.poll_until(cx, &self.clock, wakeup)) => {}
        }
        self.drain().await;
        open && !self.operations.has_shut_down()
    }

    /// Takes in everything that is ready, so that it is sent in one go.
    async fn drain(&mut self) {
        let now = self.clock.now();
        for _ in 0..BATCH {
            let Ok(op) = self.inbox.try_recv() else { break };
            self.operations.take(now, op);
        }
        self.operations.tick(now);
        for request in self.operations.requests() {
            self.backend.submit(now, request);
        }
        for _ in 0..BATCH {
            let outcome = poll_fn(|cx| match self.backend.poll_outcome(cx) {
                Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                Poll::Pending => Poll::Ready(None),
            });
            let Some(outcome) = outcome.await else { break };
            self.operations.settle(self.clock.now(), outcome);
        }
        for request in self.operations.requests() {
            self.backend.submit(now, request);
        }
        self.operations.deliver();
    }
}

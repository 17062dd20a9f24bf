//! The thread that owns the backend and every operation in flight, so that a
//! body that blocks its runtime does not starve the renewals and a caller that
//! is cancelled does not cancel the protocol.

mod latest;
mod mailbox;
mod operations;
#[cfg(all(test, feature = "redis"))]
mod simulation;
mod turn;
mod wheel;

use std::future::poll_fn;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::backend;
use crate::config::LockConfig;
use crate::error::LockError;
use crate::guard::LockGuard;
use crate::lease::Lease;
use crate::query::Query;
use crate::terms::{LeaseId, Terms};

use operations::Operations;
use turn::Driver;
use wheel::Wheel;

#[cfg(feature = "redis")]
pub(crate) use latest::Latest;
pub(crate) use mailbox::{Mailbox, WeakMailbox};

/// How long the thread goes on to deliver releases when nobody has a handle to
/// it any more.
const LAST_RELEASES: Duration = Duration::from_secs(5);

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
    /// A call has joined a lock, and is to end with this.
    Limit(Arc<Lease>),
    /// Answered when every release that was handed in before it has been done.
    Flush(std::sync::mpsc::Sender<()>),
    /// Answered when no lock is held and every release has been done.
    ShutDown(oneshot::Sender<()>),
}

/// Starts the driver's thread; returns its mailbox once the backend is
/// connected.
pub(crate) async fn start(config: LockConfig) -> Result<Mailbox, LockError> {
    let (ready, connected) = oneshot::channel();
    thread::Builder::new()
        .name("lock-driver".into())
        .spawn(move || run(config, ready))
        .map_err(LockError::unavailable)?;
    connected.await.unwrap_or(Err(LockError::ShutDown))
}

fn run(config: LockConfig, ready: Answer<Mailbox>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(drive(config, ready)),
        Err(error) => drop(ready.send(Err(LockError::unavailable(error)))),
    }
}

async fn drive(config: LockConfig, ready: Answer<Mailbox>) {
    let backend = match backend::connect(&config).await {
        Ok(backend) => backend,
        Err(error) => return drop(ready.send(Err(error))),
    };
    let (ops, inbox) = mpsc::unbounded_channel();
    let wheel = Arc::new(Wheel::new(Some(Handle::current())));
    let mailbox = Mailbox::new(ops, Arc::clone(&wheel));
    let clock = config.clock.clone();
    let operations = Operations::new(config, mailbox.downgrade());
    let _installed = wheel.install(Driver::new(inbox, backend, operations, clock));
    let _ = ready.send(Ok(mailbox));

    poll_fn(|cx| wheel.poll_drive(cx, Driver::is_over)).await;
    let last_releases = poll_fn(|cx| wheel.poll_drive(cx, Driver::is_idle));
    let _ = tokio::time::timeout(LAST_RELEASES, last_releases).await;
}

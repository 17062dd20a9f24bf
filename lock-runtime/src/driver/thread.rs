//! The driver's thread: connects the store, and polls the engine until nobody needs it.

use std::future::poll_fn;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::engine::Engine;
use super::limits::Limits;
use super::mailbox::{Mailbox, Poller};
use super::operations::Operations;
use super::polling::{InstalledEngine, SharedEngine};
use crate::backend::setup::Setup;
use crate::backend::{Backend, Target};
use crate::base::clock::Clock;
use crate::held::home::Home;
#[cfg(feature = "metrics")]
use crate::telemetry::metrics;
use crate::types::answer::Answer;
use crate::types::error::LockError;

/// How long the thread goes on to deliver releases after the last handle is gone.
const LAST_RELEASES: Duration = Duration::from_secs(5);

/// Starts the driver's thread; returns its mailbox once the store is connected.
pub(crate) async fn start(
    target: Arc<dyn Target>,
    setup: Setup,
    limits: Limits,
) -> Result<Arc<Mailbox>, LockError> {
    #[cfg(feature = "metrics")]
    metrics::describe();
    let (ready, connected) = oneshot::channel();
    let server = name(&*target);
    thread::Builder::new()
        .name("lock-driver".into())
        .spawn(move || run(&*target, &setup, limits, ready))
        .map_err(|error| LockError::unavailable_at(&server, error))?;
    connected.await.unwrap_or(Err(LockError::ShutDown))
}

fn run(target: &dyn Target, setup: &Setup, limits: Limits, ready: Answer<Arc<Mailbox>>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(drive(target, setup, limits, ready)),
        Err(error) => drop(ready.send(Err(LockError::unavailable_at(&name(target), error)))),
    }
}

/// The store's name in errors.
fn name(target: &dyn Target) -> Arc<str> {
    target.to_string().into()
}

async fn drive(target: &dyn Target, setup: &Setup, limits: Limits, ready: Answer<Arc<Mailbox>>) {
    let backend = match target.connect(setup).await {
        Ok(backend) => backend,
        Err(error) => return drop(ready.send(Err(error))),
    };
    let clock = setup.clock.clone();
    let (mailbox, installed) = install(backend, clock, limits, Poller::Thread, name(target));
    let _ = ready.send(Ok(mailbox));
    work(installed).await;
}

/// An engine that has nothing to do yet, and the mailbox in which callers leave operations.
pub(super) fn install(
    backend: Box<dyn Backend>,
    clock: Clock,
    limits: Limits,
    poller: Poller,
    server: Arc<str>,
) -> (Arc<Mailbox>, InstalledEngine) {
    let (ops, inbox) = mpsc::unbounded_channel();
    let engine = Arc::new(SharedEngine::new(Some(Handle::current())));
    let mailbox = Mailbox::new(ops, Arc::clone(&engine), poller, Arc::clone(&server));
    let mailbox = Arc::new(mailbox);
    let home: Arc<dyn Home> = mailbox.clone();
    let operations = Operations::new(clock.clone(), limits, Arc::downgrade(&home), server);
    let installed = engine.install(Engine::new(inbox, backend, operations, clock));
    (mailbox, installed)
}

/// Polls the engine until nobody needs it, and takes it out again.
pub(super) async fn work(installed: InstalledEngine) {
    let engine = &installed.0;
    poll_fn(|cx| engine.poll_on_thread(cx, Engine::is_over)).await;
    let last_releases = poll_fn(|cx| engine.poll_on_thread(cx, Engine::is_idle));
    let _ = tokio::time::timeout(LAST_RELEASES, last_releases).await;
}

//! A driver without a thread, for tests: as a task of the caller's runtime it keeps a paused clock
//! from moving on while there is something to do.

use std::sync::Arc;

use super::limits::Limits;
use super::mailbox::{Mailbox, Poller};
use super::thread::{install, work};
use crate::backend::Backend;
use crate::backend::capabilities::Capabilities;
use crate::base::clock::Clock;

/// Spawns the driver on this runtime; returns its mailbox.
pub(crate) fn spawn(backend: Box<dyn Backend>, clock: Clock, limits: Limits) -> Arc<Mailbox> {
    let can = Capabilities::all("memory");
    let (mailbox, installed) = install(backend, clock, limits, Poller::Task, can, "memory".into());
    tokio::spawn(work(installed));
    mailbox
}

//! What somebody else does to locks and connections, at the wish of a process.

use std::{path::Path, sync::Arc, time::Duration};

use lock_runtime::LockManager;

use super::{event::What, store::Server};
use crate::{
    connect,
    log::{Log, monotonic},
};

/// Revokes locks, and closes connections.
#[derive(Debug)]
pub(super) struct Meddler {
    server: Arc<Server>,
    locks: LockManager,
    log: Log,
}

impl Meddler {
    pub(super) async fn new(server: Arc<Server>, directory: &Path) -> Self {
        Self {
            locks: connect(server.url()).await,
            server,
            log: Log::open(directory).expect("the history can be written"),
        }
    }

    /// Revokes a lock; its holders are notified.
    pub(super) async fn force(&self, operation: &str, key: &str) {
        let from = monotonic();
        let forced = self.locks.force_release(key).await;
        forced.unwrap_or_else(|error| panic!("{key} cannot be forced: {error}"));
        self.note(operation, from, key).await;
    }

    /// The server loses the holders of a lock, and notifies nobody.
    pub(super) async fn forget(&self, operation: &str, key: &str) {
        let from = monotonic();
        self.server.forget(key).await;
        self.note(operation, from, key).await;
    }

    /// Notes that what was granted before is worth nothing any more.
    async fn note(&self, operation: &str, from: Duration, key: &str) {
        let fence = self.server.fence(key).await;
        let what = What::Revoked(key.to_owned(), from, fence);
        self.log
            .note(monotonic(), format_args!("{operation} {what}"));
    }

    /// Closes the connections of a process.
    pub(super) async fn cut(&self, process: u32) {
        self.server.cut(process).await;
    }
}

//! Sections of several managers under the same locks, and a referee.

use std::{sync::Arc, time::Duration};

use lock_runtime::LockManager;
use tests::{
    TIME_LIMIT, eventually,
    kinds::{Kind, Referee},
};
use tokio::task::JoinSet;

use crate::{TTL, patient};

/// The locks that all take.
const KEYS: [&str; 4] = ["one", "two", "three", "four"];

/// Work that goes on until it is stopped.
pub(crate) struct Load {
    referee: Arc<Referee>,
    tasks: JoinSet<()>,
}

/// Leaves when the body has ended, or is dropped since its lease has.
struct Inside<'a>(&'a Referee, &'static str);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1, Kind::Exclusive);
    }
}

impl Load {
    /// Two managers, each with two tasks for each lock.
    pub(crate) async fn start(url: &str) -> Self {
        Self::start_for(url, TTL).await
    }

    /// The same with leases of this time.
    pub(crate) async fn start_for(url: &str, ttl: Duration) -> Self {
        let referee = Arc::<Referee>::default();
        let mut tasks = JoinSet::new();
        for _ in 0..2 {
            let locks = patient(url).await;
            for key in KEYS.into_iter().chain(KEYS) {
                tasks.spawn(work(locks.clone(), key, ttl, Arc::clone(&referee)));
            }
        }
        Self { referee, tasks }
    }

    /// How many sections there were so far.
    pub(crate) fn sections(&self) -> u64 {
        self.referee.entered()
    }

    /// Returns when there were so many more sections.
    pub(crate) async fn go_on(&self, more: u64) {
        let enough = self.sections() + more;
        // There may be an election first, on a busy machine.
        let limit = 3 * TIME_LIMIT + Duration::from_millis(20) * u32::try_from(more).unwrap();
        eventually(limit, async || self.sections() >= enough).await;
    }

    /// Ends it; panics if somebody was not alone, or a fence did not grow.
    pub(crate) async fn end(mut self) {
        self.tasks.abort_all();
        while let Some(task) = self.tasks.join_next().await {
            if let Err(error) = task {
                assert!(error.is_cancelled(), "{error}");
            }
        }
    }
}

async fn work(locks: LockManager, key: &'static str, ttl: Duration, referee: Arc<Referee>) {
    loop {
        let referee = &*referee;
        let request = locks.lock(key).ttl(ttl).wait(Duration::from_secs(5));
        let section = request.run(async move |guard| {
            referee.enter(key, Kind::Exclusive, guard.fencing_token());
            let _inside = Inside(referee, key);
            tokio::time::sleep(Duration::from_millis(fastrand::u64(..4))).await;
        });
        // What cannot be asked or is lost is tried again.
        let _ = section.await;
    }
}

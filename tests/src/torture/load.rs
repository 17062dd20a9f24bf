//! What a tortured process does: takes locks for bodies that note every poll and write to a fenced register.

use std::{
    future::poll_fn,
    path::Path,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_runtime::{LockConfig, LockError, LockGuard, LockManager};
use redis::{Script, aio::MultiplexedConnection};
use tokio::{task::JoinSet, time::sleep};

use super::{
    LONG, SHORT, TTL,
    history::{Grant, History, Kind, monotonic},
    lock_name,
};
use crate::server::connect;

/// Takes a write only under a fence that is none of an earlier holder's.
const WRITE: &str = "
local last = tonumber(redis.call('GET', KEYS[1]) or '0')
if tonumber(ARGV[1]) < last then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('RPUSH', KEYS[1] .. ':log', ARGV[1])
return 1
";

/// How long bodies are.
#[derive(Clone, Copy, Debug)]
enum Bodies {
    /// They may outlast several leases.
    Long,
    /// They end soon, so that there are many.
    Short,
}

/// Runs until the process ends.
pub async fn run(locks: &str, register: &str, directory: &Path) {
    let config = LockConfig::new(locks).expect("a URL");
    let worker = Arc::new(Worker {
        // A fault may strike while it starts.
        manager: LockManager::connect(config.lazy())
            .await
            .expect("a manager"),
        register: connect(register).await,
        history: History::open(directory).expect("the history can be written"),
    });
    let mut tasks = JoinSet::new();
    for (bodies, count) in [(Bodies::Long, LONG), (Bodies::Short, SHORT)] {
        for _ in 0..count {
            let worker = Arc::clone(&worker);
            tasks.spawn(async move {
                loop {
                    worker.section(bodies).await;
                }
            });
        }
    }
    tasks.join_all().await;
}

struct Worker {
    manager: LockManager,
    register: MultiplexedConnection,
    history: History,
}

impl Worker {
    async fn section(&self, bodies: Bodies) {
        let key = match bodies {
            Bodies::Long => fastrand::usize(..LONG),
            Bodies::Short => LONG + fastrand::usize(..SHORT),
        };
        let asked = monotonic();
        let request = self.manager.lock(lock_name(key)).ttl(TTL);
        let Ok(guard) = request.wait(Duration::from_secs(5)).acquire().await else {
            // The server is away; the faults decide for how long.
            sleep(Duration::from_millis(20)).await;
            return;
        };
        let history = &self.history;
        let grant = history.grant(key, guard.fencing_token().get());
        history.note_at(asked, Kind::Asked, grant);
        let body = self.body(grant, bodies);
        match noted(body, &guard, grant, history).await {
            Ok(()) => history.note(Kind::Done, grant),
            Err(LockError::Lost { .. }) => history.note(Kind::Lost, grant),
            Err(error) => panic!("a body ends by itself or is lost: {error}"),
        }
    }

    async fn body(&self, grant: Grant, bodies: Bodies) {
        let (writes, pause) = match bodies {
            // Half of them may outlast several leases.
            Bodies::Long if fastrand::bool() => (fastrand::u32(1..300), 5),
            Bodies::Long => (fastrand::u32(1..30), 5),
            Bodies::Short => (fastrand::u32(1..3), 1),
        };
        let script = Script::new(WRITE);
        for _ in 0..writes {
            let mut write = script.key(lock_name(grant.key));
            let taken: bool = write
                .arg(grant.fence)
                .invoke_async(&mut self.register.clone())
                .await
                .expect("the register is not tortured");
            let kind = if taken { Kind::Accepted } else { Kind::Stale };
            self.history.note(kind, grant);
            sleep(Duration::from_millis(pause)).await;
        }
    }
}

/// Holds the lock during `body` and notes every poll of it, at the moment before the lock looks at its clock: what the
/// clock says to the lock is not earlier.
async fn noted<F: Future>(
    body: F,
    guard: &LockGuard,
    grant: Grant,
    history: &History,
) -> Result<F::Output, LockError> {
    let before = Mutex::new((Duration::ZERO, true));
    let mut body = pin!(body);
    let mut kind = Kind::Enter;
    let mut holding = pin!(guard.hold(poll_fn(|cx| {
        let (at, held) = *before.lock().expect("no panic");
        history.note_at(at, if held { kind } else { Kind::Late }, grant);
        kind = Kind::Poll;
        body.as_mut().poll(cx)
    })));
    poll_fn(|cx| {
        *before.lock().expect("no panic") = (monotonic(), guard.is_held());
        holding.as_mut().poll(cx)
    })
    .await
}

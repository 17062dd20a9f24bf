//! What a tortured process does: takes locks for bodies that note every poll and write to a fenced register.

use std::{
    future::poll_fn,
    path::Path,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_runtime::{LockConfig, LockError, LockGuard, LockManager, LockRequest};
use redis::{Script, aio::MultiplexedConnection};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    HOT, KEYS, LONG, SHORT, TTL,
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

/// Longer than a fault.
const WAIT: Duration = Duration::from_secs(5);

/// How long bodies are.
#[derive(Clone, Copy, Debug)]
enum Bodies {
    /// They may outlast several leases.
    Long,
    /// They end soon, so that there are many.
    Short,
    /// They end at once, and all want the same lock.
    Hot,
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
    // Where locks are not passed on, there is nothing to see.
    let hot = if locks.starts_with("redis+redlock:") {
        0
    } else {
        HOT
    };
    let all = [
        (Bodies::Long, LONG),
        (Bodies::Short, SHORT),
        (Bodies::Hot, hot),
    ];
    for (bodies, count) in all {
        for _ in 0..count {
            let worker = Arc::clone(&worker);
            tasks.spawn(async move {
                loop {
                    match bodies {
                        Bodies::Hot => worker.want_the_same().await,
                        _ => worker.section(bodies).await,
                    }
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
            Bodies::Hot => KEYS - 1,
        };
        self.turn(key, bodies, |request| request).await;
    }

    /// Turns of all sorts stand in one line, and some are given up, wherever they are then.
    async fn want_the_same(&self) {
        let soon = Duration::from_millis(fastrand::u64(..30));
        let turn = |how: fn(LockRequest) -> LockRequest| self.turn(KEYS - 1, Bodies::Hot, how);
        match fastrand::u8(..32) {
            0 | 1 => turn(|it| it.renew(false)).await,
            2 => turn(|it| it.min_hold(Duration::from_millis(5))).await,
            3 => turn(|it| it.wait(Duration::from_millis(10))).await,
            4..8 => {
                let _given_up = timeout(soon, turn(|it| it)).await;
            }
            8 => self.read().await,
            _ => turn(|it| it).await,
        }
        sleep(soon / 2).await;
    }

    /// What readers do beside each other, the model checks.
    async fn read(&self) {
        let request = self.manager.lock(lock_name(KEYS - 1)).ttl(TTL).read();
        if let Ok(guard) = request.wait(WAIT).acquire().await {
            let _lost = guard.hold(sleep(Duration::from_millis(1))).await;
        }
    }

    async fn turn(&self, key: usize, bodies: Bodies, how: impl FnOnce(LockRequest) -> LockRequest) {
        let asked = monotonic();
        let request = self.manager.lock(lock_name(key)).ttl(TTL).wait(WAIT);
        let Ok(guard) = how(request).acquire().await else {
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
            Bodies::Short => (fastrand::u32(1..3), fastrand::u64(..2)),
            Bodies::Hot => (fastrand::u32(..2), 0),
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

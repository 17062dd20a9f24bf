//! Slots move to other masters while their locks are held, waited for and released.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lock_runtime::inspect::Status;
use lock_runtime::{LockError, LockGuard, LockManager};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{ClusterFleet, Register, TIME_LIMIT, connect, fixtures::unique};

/// How many locks are held for long, and how many for short.
const LOCKS: usize = 4;
/// How many tasks of each process take one of the short ones in turn.
const TASKS: usize = 2;
/// Shorter than a hold of several moves: what is held has to be renewed while its slot moves.
const TTL: Duration = Duration::from_secs(3);
/// How long a long one is held: over several moves.
const HELD: Duration = Duration::from_secs(7);
/// From the beginning of a move to that of the next.
const PAUSE: Duration = Duration::from_millis(150);

/// What so many moves have shown.
#[derive(Debug, Default)]
pub struct Moved {
    /// How many slots moved.
    pub moves: usize,
    /// How many keys moved with them.
    pub keys: usize,
    /// How often a lock was taken.
    pub grants: u64,
    /// What must not be.
    pub violations: Vec<String>,
}

/// Moves the slots of some locks under load.
pub async fn move_slots(moves: usize) -> Moved {
    let fleet = ClusterFleet::start().await;
    let load = Load::start(&fleet.url()).await;
    let mut seen = Moved::default();
    for _ in 0..moves {
        let name = &load.names[fastrand::usize(..load.names.len())];
        let slot = fleet.slot_of(name).await;
        let from = fleet.owner(slot).await;
        let to = (from + fastrand::usize(1..3)) % 3;
        fleet.begin_move(slot, to).await;
        // Calls about what is half here and half there.
        sleep(PAUSE / 3).await;
        seen.keys += fleet.move_keys(slot, from, to).await;
        sleep(PAUSE / 3).await;
        seen.keys += fleet.move_keys(slot, from, to).await;
        fleet.end_move(slot, from, to).await;
        seen.moves += 1;
        sleep(PAUSE / 3).await;
    }
    (seen.grants, seen.violations) = load.stop().await;
    seen
}

/// Two processes, so to speak, and what they do.
struct Load {
    names: Vec<String>,
    register: Arc<Register>,
    stopped: Arc<AtomicUsize>,
    tasks: JoinSet<Vec<String>>,
}

impl Load {
    async fn start(url: &str) -> Self {
        let mut load = Self {
            names: (0..2 * LOCKS).map(|_| unique("moving")).collect(),
            register: Arc::new(Register::start().await),
            stopped: Arc::default(),
            tasks: JoinSet::new(),
        };
        for _ in 0..2 {
            let locks = connect(url).await;
            for (number, name) in load.names.iter().enumerate() {
                let long = number < LOCKS;
                for _ in 0..if long { 1 } else { TASKS } {
                    let (locks, name) = (locks.clone(), name.clone());
                    let (register, stopped) =
                        (Arc::clone(&load.register), Arc::clone(&load.stopped));
                    load.tasks.spawn(async move {
                        let mut violations = Vec::new();
                        while stopped.load(Ordering::SeqCst) == 0 {
                            let outcome = section(&locks, &name, &register, long).await;
                            violations.extend(outcome.err());
                        }
                        violations
                    });
                }
            }
        }
        load
    }

    async fn stop(self) -> (u64, Vec<String>) {
        self.stopped.store(1, Ordering::SeqCst);
        let mut violations = self.tasks.join_all().await.concat();
        violations.extend(self.register.violations().await);
        (self.register.sections().await, violations)
    }
}

/// Takes a lock, is sure of it, and lets go of it; says what went wrong.
async fn section(
    locks: &LockManager,
    name: &str,
    register: &Register,
    long: bool,
) -> Result<(), String> {
    let request = locks.lock(name).ttl(TTL).wait(TIME_LIMIT);
    let guard = request
        .acquire()
        .await
        .map_err(|error| format!("{name}: not taken: {error}"))?;
    let inside = register.enter(name, guard.fencing_token().get()).await;
    let sure = stay(
        locks,
        &guard,
        name,
        if long { HELD } else { Duration::ZERO },
    )
    .await;
    inside.leave().await;
    sure?;
    match guard.release_confirmed().await {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("{name}: it was not ours any more at its release")),
        Err(error) => Err(format!("{name}: not released: {error}")),
    }
}

/// Asks for the lock's state, at least once: it is about this lock, and this grant.
async fn stay(
    locks: &LockManager,
    guard: &LockGuard,
    name: &str,
    time: Duration,
) -> Result<(), String> {
    let end = Instant::now() + time;
    loop {
        if !guard.is_held() {
            return Err(format!("{name}: a renewal was lost"));
        }
        match locks.status(name).await {
            Ok(status) => is_about(&status, guard)?,
            // While its keys are on both sides the lock has no state.
            Err(LockError::Unavailable { .. }) => {}
            Err(error) => return Err(format!("{name}: {error}")),
        }
        if Instant::now() >= end {
            return Ok(());
        }
        sleep(PAUSE).await;
    }
}

/// Whether an answer is this grant's. A busy holder may not have said its token in time.
fn is_about(status: &Status, guard: &LockGuard) -> Result<(), String> {
    let ours = guard.fencing_token();
    if let [holder] = &status.holders[..]
        && status.key == *guard.key()
        && holder.fencing_token.is_none_or(|it| it == ours)
    {
        return Ok(());
    }
    Err(format!("{}: another one's answer: {status:?}", guard.key()))
}

//! What a process does: its share of the operations, a few at a time.
//!
//! One thread runs them all, so that a process is stopped between two turns of its bodies: a turn that is cut in two is
//! longer than promises allow.

use crate::connect;
use std::{
    collections::{HashSet, VecDeque},
    future::poll_fn,
    io,
    path::Path,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use lock_runtime::{LockError, LockGuard, LockManager, LockRequest};
use tokio::{
    task::{JoinSet, yield_now},
    time::{sleep, timeout},
};

use super::{
    PROCESSES, Share, TASKS,
    event::{Event, What},
    plan::{Fault, Kind, Operation},
};
use crate::log::{self, Log, monotonic};

/// Progress is reported after so many operations.
const ALIVE: usize = 50;

/// Does the operations of this share which no earlier process has begun.
pub async fn work(share: Share, locks: &str, directory: &Path) {
    let begun = log::read(directory, Event::parse).expect("the histories can be read");
    let begun: HashSet<_> = begun.iter().map(|event| event.operation).collect();
    let left = (share.process..share.operations).step_by(PROCESSES);
    let left: VecDeque<_> = left.filter(|number| !begun.contains(number)).collect();
    let left = Arc::new(Mutex::new(left));
    let log = Arc::new(Log::open(directory).expect("the history can be written"));
    let locks = connect(locks).await;
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (left, log, locks) = (Arc::clone(&left), Arc::clone(&log), locks.clone());
        tasks.spawn(async move {
            let next = || {
                let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
                let number = left.pop_front();
                if left.len() % ALIVE == 0 {
                    println!("alive");
                }
                number
            };
            while let Some(number) = next() {
                let operation = Operation::of(share.seed, number);
                let log = Arc::clone(&log);
                let history = History { log, number };
                history.perform(&locks, operation).await;
            }
        });
    }
    tasks.join_all().await;
    locks.shutdown().await;
    println!("done");
}

/// Where one operation is noted.
#[derive(Clone)]
struct History {
    log: Arc<Log>,
    number: usize,
}

impl History {
    fn note(&self, what: &What) {
        self.note_at(monotonic(), what);
    }

    fn note_at(&self, at: Duration, what: &What) {
        self.log.note(at, format_args!("{} {what}", self.number));
    }

    async fn perform(self, locks: &LockManager, operation: Operation) {
        self.note(&What::Begin(operation.kind, operation.keys.clone()));
        if let Some((after, fault)) = operation.fault {
            tokio::spawn(self.clone().strike(after, fault, operation.keys[0].clone()));
        }
        match operation.cancel {
            Some(after) => {
                let run = timeout(after, self.run(locks, &operation));
                if run.await.is_err() {
                    self.note(&What::Cancelled);
                }
            }
            None => self.run(locks, &operation).await,
        }
    }

    async fn run(&self, locks: &LockManager, operation: &Operation) {
        let guard = match request(locks, operation).acquire().await {
            Ok(guard) => guard,
            Err(error) => return self.note(&What::Failed(name(&error))),
        };
        let at = monotonic();
        let fence = guard.fencing_token().get();
        let keys = guard.keys().map(ToString::to_string).collect();
        self.note_at(at, &What::Granted(fence, at + guard.remaining(), keys));
        match guard.hold(self.noted(&guard, body(operation))).await {
            Ok(()) => self.note(&What::Done),
            Err(LockError::Lost { .. }) => self.note(&What::Lost),
            Err(error) => self.note(&What::Failed(name(&error))),
        }
        if operation.confirmed {
            self.note(&What::Release);
            let released = guard.release_confirmed().await;
            self.note(&What::Released(matches!(released, Ok(true))));
        }
    }

    /// Notes the beginning of every turn of a body.
    async fn noted<F: Future>(&self, guard: &LockGuard, body: F) -> F::Output {
        let mut body = pin!(body);
        poll_fn(|cx| {
            let at = monotonic();
            let left = guard.remaining();
            let until = if left.is_zero() { left } else { at + left };
            self.note_at(at, &What::Step(until));
            body.as_mut().poll(cx)
        })
        .await
    }

    /// Asks for what is to befall this process; it goes on after a stop.
    async fn strike(self, after: Duration, fault: Fault, key: String) {
        sleep(after).await;
        let number = self.number;
        match fault {
            Fault::Cut => {
                self.note(&What::Cut);
                println!("cut");
            }
            Fault::Force => println!("force {number} {key}"),
            Fault::Forget => println!("forget {number} {key}"),
            Fault::Kill => {
                self.note(&What::Kill);
                println!("kill");
            }
            Fault::Stop(time) => {
                self.note(&What::Stop);
                println!("stop {}", time.as_millis());
                // The only thread that has bodies stands here until it was stopped and goes on.
                let said = io::stdin().read_line(&mut String::new());
                said.expect("there is somebody who says `go on`");
            }
        }
    }
}

fn request(locks: &LockManager, operation: &Operation) -> LockRequest {
    let request = match operation.keys.as_slice() {
        [key] => locks.lock(key),
        keys => locks.lock_all(keys),
    };
    let request = request.ttl(operation.ttl).wait(operation.wait);
    let request = request.renew(operation.renew);
    let request = match operation.min_hold {
        Some(time) => request.min_hold(time),
        None => request,
    };
    match operation.kind {
        Kind::Exclusive => request,
        Kind::Read => request.read(),
        Kind::Permits(most) => request.permits(most),
    }
}

async fn body(operation: &Operation) {
    yield_now().await;
    for pause in &operation.pauses {
        sleep(*pause).await;
    }
}

fn name(error: &LockError) -> String {
    let name = match error {
        LockError::Contended { .. } => "contended",
        LockError::Unavailable { .. } => "unavailable",
        LockError::InvalidOptions { .. } => "invalid-options",
        other => return format!("{other}").replace(' ', "-"),
    };
    name.to_owned()
}

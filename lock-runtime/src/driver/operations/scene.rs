//! A table of operations without a driver, on a clock that its test moves.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::oneshot;

use super::Operations;
use crate::backend::Outcome;
use crate::base::clock::Clock;
use crate::driver::limits::Limits;
use crate::driver::op::Op;
use crate::held::guard::LockGuard;
use crate::held::home::{Home, Nowhere};
use crate::types::error::LockError;
use crate::types::terms::{LeaseId, Terms, Wait};

const TTL: Duration = Duration::from_secs(10);

pub(super) struct Scene {
    pub(super) clock: Clock,
    pub(super) operations: Operations,
    _home: Arc<dyn Home>,
}

impl Scene {
    /// Acquisitions go on for so long while the store cannot be asked.
    pub(super) fn new(unavailable_wait: Wait) -> Self {
        let clock = Clock::manual();
        let home: Arc<dyn Home> = Arc::new(Nowhere);
        let limits = Limits {
            shutdown_grace: Duration::ZERO,
            unavailable_wait,
        };
        let weak: Weak<dyn Home> = Arc::downgrade(&home);
        Self {
            operations: Operations::new(clock.clone(), limits, weak, "a server".into()),
            clock,
            _home: home,
        }
    }

    pub(super) fn take(&mut self, op: Op) {
        self.operations.take(self.clock.now(), op);
    }

    /// Waits for a lock without end.
    pub(super) fn acquire(&mut self, id: u64) -> oneshot::Receiver<Result<LockGuard, LockError>> {
        let terms = Terms::of(LeaseId(id), "key", TTL).into();
        let (reply, answer) = oneshot::channel();
        self.take(Op::Acquire { terms, reply });
        answer
    }

    /// Takes a lock that is free.
    pub(super) fn hold(&mut self, id: u64) {
        drop(self.acquire(id));
        let granted = Outcome::Granted {
            id: LeaseId(id),
            fence: 1,
            token: Some(1),
            since: self.clock.now(),
            ttl: TTL,
        };
        self.settle(granted);
    }

    pub(super) fn settle(&mut self, outcome: Outcome) {
        self.operations.settle(self.clock.now(), outcome);
    }

    /// Goes on so much later.
    pub(super) fn tick_after(&mut self, pause: Duration) {
        self.clock.advance(pause);
        self.operations.tick(self.clock.now());
    }
}

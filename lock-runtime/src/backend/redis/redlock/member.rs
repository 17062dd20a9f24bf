//! One of the servers of which a majority decides. It is polled only if it has been woken or
//! asked: answers come in from one server after the other, and each wakes the whole.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::backend::redis::Redis;
use crate::backend::{Backend as _, Outcome};
use crate::base::bell::Bell;

#[derive(Debug)]
pub(super) struct Member {
    redis: Redis,
    bell: Arc<Bell>,
    waker: Waker,
}

impl Member {
    pub(super) fn new(redis: Redis) -> Self {
        let bell = Bell::new();
        Self {
            redis,
            waker: Waker::from(Arc::clone(&bell)),
            bell,
        }
    }

    pub(super) fn redis(&self) -> &Redis {
        &self.redis
    }

    /// To ask it for something, which the next poll sends.
    pub(super) fn ask(&mut self) -> &mut Redis {
        self.bell.ring();
        &mut self.redis
    }

    /// Its next outcome, if something has come in or is to be sent.
    pub(super) fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        if !self.bell.has_rung(cx.waker()) {
            return Poll::Pending;
        }
        let outcome = self
            .redis
            .poll_outcome(&mut Context::from_waker(&self.waker));
        if outcome.is_ready() {
            // There may be more.
            self.bell.ring();
        }
        outcome
    }
}

//! The answer to a release, for a caller that waits for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use crate::held::home::Home;
use crate::types::error::LockError;

/// Resolves to whether the lock was still held.
pub(crate) struct Confirmation {
    answer: oneshot::Receiver<Result<bool, LockError>>,
    /// A waiting caller does not keep the driver alive.
    home: Weak<dyn Home>,
}

impl Confirmation {
    pub(super) fn new(
        answer: oneshot::Receiver<Result<bool, LockError>>,
        home: &Arc<dyn Home>,
    ) -> Self {
        let home = Arc::downgrade(home);
        Self { answer, home }
    }
}

impl Future for Confirmation {
    type Output = Result<bool, LockError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.answer).poll(cx));
        if let Some(home) = self.home.upgrade() {
            home.help_to_deliver();
        }
        Poll::Ready(answer.unwrap_or(Err(LockError::ShutDown)))
    }
}

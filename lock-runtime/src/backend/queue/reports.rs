//! What holders report of their locks, on its way to the queries that ask for it.

use std::time::Duration;

use tokio::sync::mpsc;

use super::protocol::trouble::Trouble;
use crate::backend::token::Token;

/// What a holder says of its lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) token: Token,
    pub(crate) fence: u64,
    pub(crate) held: Duration,
    /// How many follow it in its chain.
    pub(crate) followers: usize,
}

/// Reports as they arrive, until the connection is gone.
pub(crate) type Reports = mpsc::UnboundedReceiver<Result<Report, Trouble>>;

/// The queries that await reports.
#[derive(Debug, Default)]
pub(super) struct Listeners(Vec<mpsc::UnboundedSender<Result<Report, Trouble>>>);

impl Listeners {
    pub(super) fn listen(&mut self) -> Reports {
        let (listener, reports) = mpsc::unbounded_channel();
        self.0.retain(|it| !it.is_closed());
        self.0.push(listener);
        reports
    }

    pub(super) fn reported(&self, report: Report) {
        for listener in &self.0 {
            let _ = listener.send(Ok(report));
        }
    }

    /// There is no connection over which more could arrive.
    pub(super) fn end(&mut self, trouble: &Trouble) {
        for listener in self.0.drain(..) {
            let _ = listener.send(Err(trouble.clone()));
        }
    }
}

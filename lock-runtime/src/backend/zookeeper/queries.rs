//! The queries that are not answered yet: each asks the server several times, by way of
//! the connection.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc;

use super::call::{Asker, Call, Recipient};
use super::diagnosis::Ours;
use super::inspect::Inspector;
use super::protocol::paths::Paths;
use super::transport::{Dialer, Link};
use crate::backend::Outcome;
use crate::base::clock::Clock;
use crate::types::error::Cause;
use crate::types::query::{Found, Query, QueryId};

type Finding = Pin<Box<dyn Future<Output = Result<Found, Cause>> + Send>>;

pub(super) struct Queries {
    open: Vec<Open>,
    inspector: Inspector,
    /// What they ask.
    asked: mpsc::UnboundedReceiver<Call>,
}

struct Open {
    id: QueryId,
    is_probe: bool,
    finding: Finding,
}

impl Queries {
    pub(super) fn new(paths: Paths, dialer: Dialer, clock: Clock) -> Self {
        let (asker, calls) = Asker::new();
        Self {
            open: Vec::new(),
            inspector: Inspector {
                asker,
                paths,
                dialer,
                clock,
            },
            asked: calls,
        }
    }

    pub(super) fn begin(&mut self, id: QueryId, query: Query, session: Option<Ours>) {
        self.open.push(Open {
            id,
            is_probe: matches!(query, Query::Health),
            finding: Box::pin(self.inspector.clone().find(query, session)),
        });
    }

    /// What is to be sent next.
    pub(super) fn next_call(&mut self) -> Option<Call> {
        self.asked.try_recv().ok()
    }

    /// The answers that are complete by now.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, link: &Link) -> Vec<Outcome> {
        let mut answers = Vec::new();
        self.open.retain_mut(|open| {
            let Poll::Ready(mut result) = open.finding.as_mut().poll(cx) else {
                return true;
            };
            if open.is_probe {
                link.complete(&mut result);
            }
            let id = open.id;
            answers.push(Outcome::Answered { id, result });
            false
        });
        answers
    }

    /// Answers what was not sent.
    pub(super) fn fail(&mut self, cause: &Cause) {
        while let Some(call) = self.next_call() {
            if let Recipient::Query(answer) = call.to {
                drop(answer.send(Err(Arc::clone(cause))));
            }
        }
    }
}

//! Queries over the session: each asks the server several times, by way of the connection.

use std::sync::Arc;
use std::task::Context;

use super::ZooKeeper;
use super::call::Recipient;
use super::diagnosis::Ours;
use super::inspect::Inspector;
use crate::types::error::Cause;
use crate::types::query::Query;

impl ZooKeeper {
    pub(super) fn begin(&mut self, query: Query) {
        let session = self.queue.session();
        let ours = session.map(|it| Ours {
            node: self.paths.session(&it.identity),
            timeout: it.timeout,
        });
        let inspector = Inspector {
            asker: self.queries.asker(),
            paths: self.paths.clone(),
            clock: self.clock.clone(),
            session: ours.as_ref().map(|it| it.node.clone()),
        };
        let queries = &mut self.queries;
        match query {
            Query::Status(key, reply) => queries.begin(reply, inspector.status(key)),
            Query::List(pattern, reply) => queries.begin(reply, inspector.list(pattern)),
            Query::Overview(pattern, reply) => queries.begin(reply, inspector.overview(pattern)),
            Query::ForceRelease(key, reply) => queries.begin(reply, inspector.force_release(key)),
            Query::Ask(key, reply) => queries.begin(reply, inspector.ask_to_yield(key)),
            // The store has no such capability.
            Query::History(..) => {}
            Query::Health(reply) => queries.probe((), reply, inspector.echo()),
            Query::Diagnose(reply) => {
                let dialer = self.link.dialer().clone();
                queries.begin(reply, inspector.diagnose(dialer, ours));
            }
        }
    }

    pub(super) fn go_on_with_queries(&mut self, cx: &mut Context<'_>) {
        for probed in self.queries.poll(cx) {
            probed.answer(self.link.is_up(), self.link.last_error().cloned(), None);
        }
    }

    /// Fails the queries that were not sent.
    pub(super) fn fail_queries(&mut self, cause: &Cause) {
        while let Some(call) = self.queries.next_asked() {
            if let Recipient::Query(answer) = call.to {
                drop(answer.send(Err(Arc::clone(cause))));
            }
        }
    }
}

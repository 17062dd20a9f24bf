//! Which of the connections answers which query.

use std::sync::Arc;
use std::task::Context;

use super::Postgres;
use super::inspect::Inspector;
use crate::base::clock::Moment;
use crate::types::query::Query;

impl Postgres {
    pub(super) fn begin(&mut self, query: Query) {
        let connection = match &query {
            Query::Status(key, _)
            | Query::ForceRelease(key, _)
            | Query::Ask(key, _)
            | Query::History(key, _) => self.connection_of(key),
            Query::List(..) | Query::Overview(..) | Query::Diagnose(_) => 0,
            Query::Health(_) => self.connection_to_probe(),
        };
        let inspector = Inspector {
            asker: self.queries.asker(),
            connection,
            functions: Arc::clone(&self.functions),
            clock: self.clock.clone(),
        };
        let is_pooled = self.connections[connection].is_pooled();
        let queries = &mut self.queries;
        match query {
            Query::Status(key, reply) => queries.begin(reply, inspector.status(key)),
            Query::List(pattern, reply) => queries.begin(reply, inspector.list(pattern)),
            Query::Overview(pattern, reply) => queries.begin(reply, inspector.overview(pattern)),
            Query::ForceRelease(key, reply) => queries.begin(reply, inspector.force_release(key)),
            Query::Ask(key, reply) => queries.begin(reply, inspector.ask_to_yield(key)),
            Query::History(key, reply) => queries.begin(reply, inspector.history(key)),
            Query::Diagnose(reply) => queries.begin(reply, inspector.diagnose(is_pooled)),
            Query::Health(reply) => queries.probe(connection, reply, inspector.echo()),
        }
    }

    /// Gives the steps that follow from what has been answered to the queues.
    pub(super) fn go_on_with_queries(&mut self, cx: &mut Context<'_>, now: Moment) {
        for probed in self.queries.poll(cx) {
            let connection = &self.connections[probed.connection];
            let until = connection.queue.quarantined_until();
            probed.answer(connection.is_up(), connection.last_error(), until);
        }
        while let Some(asked) = self.queries.next_asked() {
            let queue = &mut self.connections[asked.connection].queue;
            queue.inspect(now, asked.step, asked.by);
        }
    }

    /// One that is broken, or else each in turn.
    fn connection_to_probe(&mut self) -> usize {
        self.probes = self.probes.wrapping_add(1);
        let broken = self.connections.iter().position(|it| !it.is_up());
        broken.unwrap_or(self.probes % self.connections.len())
    }
}

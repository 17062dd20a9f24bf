//! Which of the connections answers which query.

use std::task::Context;

use super::Redis;
use super::inspect::Server;
use crate::base::clock::Moment;
use crate::types::query::Query;

impl Redis {
    pub(super) fn begin(&mut self, query: Query) {
        let link = match &query {
            Query::Status(key, _)
            | Query::ForceRelease(key, _)
            | Query::Ask(key, _)
            | Query::History(key, _) => self.link_of(key),
            Query::List(..) | Query::Overview(..) | Query::Diagnose(_) => 0,
            Query::Health(_) => self.link_to_probe(),
        };
        let server = Server {
            asker: self.queries.asker(),
            connection: link,
            layout: self.layout,
            clock: self.clock.clone(),
        };
        let (queries, queue) = (&mut self.queries, &mut self.links[link].queue);
        match query {
            Query::Status(key, reply) => {
                queries.begin(reply, server.status(key, queue.listen()));
            }
            Query::List(pattern, reply) => queries.begin(reply, server.list(pattern)),
            Query::Overview(pattern, reply) => queries.begin(reply, server.overview(pattern)),
            Query::ForceRelease(key, reply) => queries.begin(reply, server.force_release(key)),
            Query::Ask(key, reply) => {
                queries.begin(reply, server.ask_to_yield(key, queue.listen()));
            }
            Query::History(key, reply) => queries.begin(reply, server.history(key)),
            Query::Diagnose(reply) => queries.begin(reply, server.diagnose()),
            Query::Health(reply) => queries.probe(link, reply, server.echo()),
        }
    }

    /// Takes in the replies that have arrived, and gives the steps that follow to the queues.
    pub(super) fn go_on_with_queries(&mut self, cx: &mut Context<'_>, now: Moment) {
        for probed in self.queries.poll(cx) {
            let link = &self.links[probed.connection];
            let until = link.queue.quarantined_until();
            probed.answer(link.is_up(), link.last_error(), until);
        }
        while let Some(asked) = self.queries.next_asked() {
            let queue = &mut self.links[asked.connection].queue;
            queue.inspect(now, asked.step, asked.by);
        }
    }

    /// One that is broken, or else each in turn.
    fn link_to_probe(&mut self) -> usize {
        self.probes = self.probes.wrapping_add(1);
        let broken = self.links.iter().position(|link| !link.is_up());
        broken.unwrap_or(self.probes % self.links.len())
    }
}

//! Which of the connections answers which query.

use std::task::Context;

use super::Redis;
use super::inspect::Server;
use crate::base::clock::Moment;
use crate::types::query::Query;

impl Redis {
    pub(super) fn begin(&mut self, query: Query) {
        match query {
            Query::Status(key, reply) => {
                let link = self.link_of(&key);
                let reports = self.links[link].queue.listen();
                let status = self.over(link).status(key, reports);
                self.queries.begin(reply, status);
            }
            Query::ForceRelease(key, reply) => {
                let server = self.over(self.link_of(&key));
                self.queries.begin(reply, server.force_release(key));
            }
            Query::List(pattern, reply) => {
                let list = self.over(0).list(pattern);
                self.queries.begin(reply, list);
            }
            Query::Overview(pattern, reply) => {
                let overview = self.over(0).overview(pattern);
                self.queries.begin(reply, overview);
            }
            Query::Diagnose(reply) => {
                let findings = self.over(0).diagnose();
                self.queries.begin(reply, findings);
            }
            Query::Health(reply) => {
                let link = self.link_to_probe();
                let echo = self.over(link).echo();
                self.queries.probe(link, reply, echo);
            }
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

    fn over(&self, link: usize) -> Server<usize> {
        Server {
            asker: self.queries.asker(),
            connection: link,
            layout: self.layout,
            clock: self.clock.clone(),
        }
    }

    /// One that is broken, or else each in turn.
    fn link_to_probe(&mut self) -> usize {
        self.probes = self.probes.wrapping_add(1);
        let broken = self.links.iter().position(|link| !link.is_up());
        broken.unwrap_or(self.probes % self.links.len())
    }
}

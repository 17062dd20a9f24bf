//! Queries: all servers are asked, and what they have found becomes one answer.

use tokio::sync::oneshot;

use super::Redlock;
use super::claim::majority;
use super::member::Member;
use super::merging::{self, Sight};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::inspect::together;
use crate::types::answer::Reply;
use crate::types::query::Query;

impl Redlock {
    pub(super) fn begin(&mut self, query: Query) {
        match query {
            Query::Status(key, reply) => {
                let part = |reply| Query::Status(key.clone(), reply);
                self.ask_all(reply, part, merging::status);
            }
            Query::List(pattern, reply) => {
                let part = |reply| Query::List(pattern.clone(), reply);
                self.ask_all(reply, part, |all, _| Some(merging::names(all)));
            }
            Query::Overview(pattern, reply) => {
                let part = |reply| Query::Overview(pattern.clone(), reply);
                self.ask_all(reply, part, merging::overview);
            }
            Query::ForceRelease(key, reply) => {
                let part = |reply| Query::ForceRelease(key.clone(), reply);
                self.ask_all(reply, part, |counts, _| counts.into_iter().max());
            }
            Query::Ask(key, reply) => {
                let part = |reply| Query::Ask(key.clone(), reply);
                self.ask_all(reply, part, |counts, _| counts.into_iter().max());
            }
            // The store has no such capability.
            Query::History(..) => {}
            Query::Health(reply) => self.ask_all(reply, Query::Health, merging::health),
            Query::Diagnose(reply) => {
                self.ask_all(reply, Query::Diagnose, |all, _| Some(merging::worst(all)));
            }
        }
    }

    /// Answers with what the servers have found, if a majority has answered.
    fn ask_all<T: Send + 'static>(
        &mut self,
        reply: Reply<T>,
        part: impl Fn(Reply<T>) -> Query,
        merge: fn(Vec<T>, Sight) -> Option<T>,
    ) {
        let ask = |server: &mut Member| {
            let (reply, answered) = oneshot::channel();
            server.ask().begin(part(reply));
            answered
        };
        let parts = self.servers.iter_mut().map(ask).collect();
        let servers = self.servers.len();
        let majority = majority(servers);
        self.queries.begin(reply, async move {
            let (found, mut failed) = together(parts).await;
            match failed.pop() {
                Some(cause) if found.len() < majority => Err(cause),
                _ => merge(found, Sight { servers, majority })
                    .ok_or_else(|| Trouble::not_now("no server has answered").cause()),
            }
        });
    }
}

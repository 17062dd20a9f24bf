//! Decides which nodes answer a query. Each node answers for the locks in its slots, and their
//! results are merged.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::task::Context;

use tokio::sync::oneshot;

use super::routes::NodeId;
use super::sharded_connection::ShardedConnection;
use super::{Cluster, Over};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::inspect::{Parts, Server, together};
use crate::backend::redis::protocol::names::Layout;
use crate::backend::redis::transport::link::Link;
use crate::base::clock::Moment;
use crate::types::answer::Reply;
use crate::types::authority::Host;
use crate::types::error::Cause;
use crate::types::finding::Finding;
use crate::types::health::{Health, LastError};
use crate::types::key::LockKey;
use crate::types::overview::Overview;
use crate::types::query::Query;

impl Cluster {
    pub(super) fn begin(&mut self, query: Query) {
        match query {
            Query::Status(key, reply) => {
                let sharded = self.sharded_of(&key);
                let reports = self.sharded[sharded].queue.listen();
                let status = self.over((sharded, None)).status(key, reports);
                self.queries.begin(reply, status);
            }
            Query::ForceRelease(key, reply) => {
                let server = self.over((self.sharded_of(&key), None));
                self.queries.begin(reply, server.force_release(key));
            }
            Query::Ask(key, reply) => {
                let sharded = self.sharded_of(&key);
                let reports = self.sharded[sharded].queue.listen();
                let asking = self.over((sharded, None)).ask_to_yield(key, reports);
                self.queries.begin(reply, asking);
            }
            Query::History(key, reply) => {
                let server = self.over((self.sharded_of(&key), None));
                self.queries.begin(reply, server.history(key));
            }
            Query::List(pattern, reply) => {
                let parts = self.ask_masters(|it| it.list(pattern.clone()));
                self.queries.begin(reply, whole(parts, names));
            }
            Query::Overview(pattern, reply) => {
                let parts = self.ask_masters(|it| it.overview(pattern.clone()));
                self.queries.begin(reply, overview(parts));
            }
            Query::Diagnose(reply) => {
                let parts = self.ask_masters(Server::diagnose);
                self.queries.begin(reply, whole(parts, findings));
            }
            Query::Health(reply) => self.probe_masters(reply),
        }
    }

    /// Takes in the replies that have arrived, and gives the steps that follow to the sharded connections.
    pub(super) fn go_on_with_queries(&mut self, cx: &mut Context<'_>, now: Moment) {
        for probed in self.queries.poll(cx) {
            let (sharded, node) = probed.connection;
            let sharded = &self.sharded[sharded];
            let link = node
                .and_then(|it| sharded.nodes.get(&it))
                .map(|it| &it.link);
            match probed.echo {
                Ok(_) => {
                    let last_error = link.and_then(Link::last_error);
                    probed.answer(true, last_error, sharded.queue.quarantined_until());
                }
                Err(cause) => drop(probed.reply.send(Err(cause))),
            }
        }
        while let Some(asked) = self.queries.next_asked() {
            let (sharded, node) = asked.connection;
            self.sharded[sharded].inspect(now, node, asked.step, asked.by);
        }
    }

    /// What each master finds. An error says which master has failed.
    fn ask_masters<T: Send + 'static, F>(&mut self, find: impl Fn(Server<Over>) -> F) -> Parts<T>
    where
        F: Future<Output = Result<T, Cause>> + Send + 'static,
    {
        let masters = self.routes.masters().into_iter().filter(|_| self.is_open);
        let mut all: Vec<Over> = masters.map(|node| (0, Some(node))).collect();
        if all.is_empty() {
            // That cannot be answered, and the queue knows why.
            all.push((0, None));
        }
        let mut parts = Parts::new();
        for over in all {
            let (part, answered) = oneshot::channel();
            let found = find(self.over(over));
            let host = over.1.and_then(|node| self.routes.host_of(node)).cloned();
            let failed = |cause: Cause| match host {
                Some(host) => Arc::new(NodeFailed { host, cause }) as Cause,
                None => cause,
            };
            let found = async move { found.await.map_err(failed) };
            self.queries.begin(part, found);
            parts.push(answered);
        }
        parts
    }

    fn over(&self, over: Over) -> Server<Over> {
        Server {
            asker: self.queries.asker(),
            connection: over,
            layout: Layout::Declared,
            clock: self.clock.clone(),
        }
    }

    /// Asks each master whether it answers, and whether the cluster serves its slots.
    fn probe_masters(&mut self, reply: Reply<Health>) {
        self.probes = self.probes.wrapping_add(1);
        let mut masters = self.routes.masters();
        if masters.is_empty() {
            masters = self.routes.nodes().map(|(node, _)| node).collect();
        }
        let mut parts = Vec::new();
        for node in masters {
            let over = (self.connection_to_probe(node), Some(node));
            let (part, answered) = oneshot::channel();
            let echo = self.over(over).echo();
            self.queries.probe(over, part, echo);
            let sharded = self.sharded[over.0].nodes.get(&node);
            let now = self.clock.now();
            let is_quarantined = sharded.is_some_and(|it| it.quarantined(now).is_some());
            let serves = self.over(over).serves();
            parts.push(async move {
                let health = answered
                    .await
                    .unwrap_or_else(|_| Err(Trouble::not_now("the query was given up").cause()));
                let unreachable = |cause| Health::unreachable(LastError::now(&cause));
                let health = health.unwrap_or_else(unreachable);
                let grants = health.connected && !is_quarantined && serves.await;
                Health { grants, ..health }
            });
        }
        self.queries.begin(reply, async move {
            let mut all = Vec::new();
            for part in parts {
                all.push(part.await);
            }
            health(all).ok_or_else(|| Trouble::not_now("no node of the cluster is known").cause())
        });
    }

    /// The sharded connection whose connection to a node is broken, or else each in turn.
    fn connection_to_probe(&self, node: NodeId) -> usize {
        let is_broken =
            |it: &ShardedConnection| it.nodes.get(&node).is_none_or(|it| !it.link.is_up());
        let broken = self.sharded.iter().position(is_broken);
        broken.unwrap_or(self.probes % self.sharded.len())
    }
}

/// The answers of the masters, as one. Locks of unreachable masters cannot be granted.
fn health(all: Vec<Health>) -> Option<Health> {
    let reachable = all.iter().filter(|it| it.connected).count();
    let unreachable = all.iter().find(|it| !it.connected);
    let last_error = unreachable.and_then(|it| it.last_error.clone());
    let last_error = last_error.or_else(|| all.iter().find_map(|it| it.last_error.clone()));
    Some(Health {
        grants: all.iter().any(|it| it.grants),
        reachable,
        servers: all.len(),
        quarantined_until: all.iter().filter_map(|it| it.quarantined_until).max(),
        last_error,
        // The slowest of those that answer.
        ..all
            .into_iter()
            .max_by_key(|it| (it.connected, it.round_trip))?
    })
}

/// The results of all nodes, unless one has failed.
async fn whole<T>(parts: Parts<T>, merge: fn(Vec<T>) -> T) -> Result<T, Cause> {
    let (found, mut failed) = together(parts).await;
    failed.pop().map_or_else(|| Ok(merge(found)), Err)
}

fn names(all: Vec<Vec<LockKey>>) -> Vec<LockKey> {
    let names: BTreeSet<_> = all.into_iter().flatten().collect();
    names.into_iter().collect()
}

/// The locks of all nodes that have answered, unless none has.
async fn overview(parts: Parts<Overview>) -> Result<Overview, Cause> {
    let (all, mut failed) = together(parts).await;
    if all.is_empty()
        && let Some(cause) = failed.pop()
    {
        return Err(cause);
    }
    let locks = all.into_iter().flat_map(|it| it.locks).collect();
    let mut overview = Overview::new(locks, None);
    // A slot may have moved in between.
    overview.locks.dedup_by(|a, b| a.key == b.key);
    overview.unanswered = failed.iter().map(|it| it.to_string().into()).collect();
    Ok(overview)
}

/// Why a node did not answer.
#[derive(Debug, thiserror::Error)]
#[error("{host}: {cause}")]
struct NodeFailed {
    host: Host,
    cause: Cause,
}

fn findings(all: Vec<Vec<Finding>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for finding in all.into_iter().flatten() {
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::queue::protocol::trouble::ServerSaid;

    /// The list made of the answers of two nodes, of which the second one comes first.
    async fn listed(parts: [Result<&[&str], Cause>; 2]) -> Result<Vec<LockKey>, Cause> {
        let parts = parts.map(|part| {
            let (reply, answered) = oneshot::channel();
            (part, reply, answered)
        });
        let mut all = Parts::new();
        let mut replies = Vec::new();
        for (part, reply, answered) in parts {
            let part = part.map(|it| it.iter().copied().map(LockKey::unchecked).collect());
            all.push(answered);
            replies.push((reply, part));
        }
        for (reply, part) in replies.into_iter().rev() {
            reply.send(part).expect("it is awaited");
        }
        whole(all, names).await
    }

    #[tokio::test]
    async fn a_list_has_what_every_node_has_listed() {
        let found = listed([Ok(&["b", "a"]), Ok(&["c", "a"])]).await;
        let found = found.expect("a list");
        let found: Vec<_> = found.iter().map(LockKey::as_str).collect();
        assert_eq!(found, ["a", "b", "c"]);
    }

    #[tokio::test]
    async fn a_list_without_the_answer_of_a_node_is_an_error() {
        let failed = Err(Arc::new(ServerSaid("cut".into())) as Cause);
        let found = listed([failed, Ok(&["a"])]).await;
        assert!(found.is_err(), "{found:?}");
    }
}

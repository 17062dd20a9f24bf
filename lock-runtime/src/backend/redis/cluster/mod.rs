//! The store on Redis Cluster: sharded connections, each with a connection to every node, over which a
//! lock's calls go to the node that serves it.

mod address;
mod joining;
mod node_mailbox;
mod queries;
pub(crate) mod routes;
mod sharded_connection;
pub(crate) mod topology;

use std::collections::BTreeMap;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::mpsc;

use self::routes::{NodeId, Routes};
use self::sharded_connection::ShardedConnection;
use super::inspect::Asked;
use super::transport::connect::Push;
use crate::backend::queries::Queries;
use crate::backend::queue::connection_of;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::setup::Setup;
use crate::backend::{Backend, Outcome, Request};
use crate::base::clock::{Clock, Moment, Sleep};
use crate::base::numbers::Numbered;
use crate::types::key::LockKey;
use crate::types::terms::LeaseId;

pub(super) use self::address::ClusterAddress;

/// How often the topology is asked for while a node cannot be reached: another one may
/// have replaced it.
const WATCH: Duration = Duration::from_millis(250);

/// The number of a link, which its pushes and events carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ConnectionId(usize);

/// The way of a query: a sharded connection, and the node if the query is about no lock.
type Over = (usize, Option<NodeId>);

/// The backend for `redis+cluster:`.
#[derive(Debug)]
pub(super) struct Cluster {
    address: ClusterAddress,
    setup: Setup,
    sharded: Vec<ShardedConnection>,
    routes: Routes,
    /// Why the topology is not known, or a node cannot be connected to.
    trouble: Option<Trouble>,
    /// The sharded connection that each acquisition went to.
    bound: Numbered<LeaseId, usize>,
    queries: Queries<Asked<Over>, Over>,
    /// Counts probes: each goes over another connection.
    probes: usize,
    /// The sharded connection and the node of each connection.
    connections: BTreeMap<ConnectionId, (usize, NodeId)>,
    next_connection: usize,
    /// Counts questions about the topology: each goes to another node.
    asked: usize,
    /// Whether the queues know that the topology is known.
    is_open: bool,
    sender: mpsc::UnboundedSender<Push>,
    pushes: mpsc::UnboundedReceiver<Push>,
    clock: Clock,
    sleep: Sleep,
}

impl Cluster {
    /// Commands about one key stay in order, since they share a sharded connection.
    fn sharded_of(&self, key: &LockKey) -> usize {
        connection_of(key, self.sharded.len())
    }

    /// Everything that can be done now; whether there may be more.
    fn take_turn(&mut self, cx: &mut Context<'_>) -> bool {
        self.receive(cx);
        let now = self.clock.now();
        self.go_on_with_queries(cx, now);
        self.ask_topology(now);
        let mut unread = false;
        for sharded in &mut self.sharded {
            unread |= sharded.drive(cx, now, &mut self.routes);
        }
        unread |= self.hear_topology(now);
        if self.sharded.iter().all(ShardedConnection::is_up) {
            self.routes.reached();
        } else {
            self.routes.doubt_at(now.after(WATCH));
            if self.reachable().is_empty() {
                self.routes.return_to_seeds(now);
            }
        }
        if self.routes.has_other_nodes() {
            self.meet(now);
            unread = true;
        }
        unread
    }

    /// Takes in everything that has arrived, pushes before the replies that arrived with
    /// them.
    fn receive(&mut self, cx: &mut Context<'_>) {
        for sharded in &mut self.sharded {
            sharded.poll_io(cx);
        }
        let now = self.clock.now();
        // They arrive while a connection is polled, and wake nobody else.
        while let Ok(push) = self.pushes.try_recv() {
            let connection = ConnectionId(push.connection);
            if let Some((sharded, node)) = self.connections.get(&connection)
                && let Some(node) = self.sharded[*sharded].nodes.get_mut(node)
            {
                node.link.pushed(now, push.generation, &push.event);
            }
        }
        for sharded in &mut self.sharded {
            sharded.settle(now, &mut self.routes);
        }
    }

    /// Asks one node after the other: a node that is cut off does not know of changes.
    fn ask_topology(&mut self, now: Moment) {
        if self.routes.next_wakeup().is_none_or(|at| at > now) {
            return;
        }
        let up = self.reachable();
        if up.is_empty() || !self.routes.begins_to_ask(now) {
            return;
        }
        self.asked = self.asked.wrapping_add(1);
        let (sharded, node) = up[self.asked % up.len()];
        self.sharded[sharded].ask_topology(now, node);
    }

    /// The connections that are open.
    fn reachable(&self) -> Vec<(usize, NodeId)> {
        let sharded = self.sharded.iter().enumerate();
        let up = sharded.flat_map(|(number, sharded)| sharded.up().map(move |id| (number, id)));
        up.collect()
    }

    /// Whether a node that serves slots can be reached.
    fn reaches_a_master(&self) -> bool {
        let masters = self.routes.masters();
        let mut up = self.reachable().into_iter();
        up.any(|(_, node)| masters.contains(&node))
    }

    /// Takes the answer about the topology, if there is one; `false` if not.
    fn hear_topology(&mut self, now: Moment) -> bool {
        let Some(topology) = self
            .sharded
            .iter_mut()
            .find_map(ShardedConnection::take_topology)
        else {
            return false;
        };
        for sharded in &mut self.sharded {
            match &topology {
                Ok(changed) if self.is_open => sharded.moved(now, &self.routes, changed),
                Ok(_) if self.routes.is_known() => {
                    sharded.close(now, &self.routes);
                    sharded.queue.connected(now);
                }
                Ok(_) => {}
                Err(trouble) if self.is_open => {}
                Err(trouble) => sharded.queue.disconnected(trouble.clone()),
            }
        }
        self.is_open = self.routes.is_known();
        self.trouble = topology.err();
        true
    }

    fn next_outcome(&mut self) -> Option<Outcome> {
        let mut sharded = self.sharded.iter_mut();
        let outcome = sharded.find_map(|it| it.queue.next_outcome())?;
        if let Some(id) = outcome.ended() {
            self.bound.remove(&id);
        }
        Some(outcome)
    }

    /// Ready when something is due that no event announces.
    fn poll_sleep(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let topology = if self.reachable().is_empty() {
            self.routes.return_at()
        } else {
            self.routes.next_wakeup()
        };
        let sharded = self
            .sharded
            .iter()
            .filter_map(ShardedConnection::next_wakeup);
        let wakeup = sharded.chain(topology).min();
        self.sleep.poll_until(cx, &self.clock, wakeup)
    }
}

impl Backend for Cluster {
    fn submit(&mut self, now: Moment, request: Request) {
        let sharded = match request {
            Request::Query(query) => return self.begin(query),
            Request::Acquire(ref terms) => {
                let sharded = self.sharded_of(&terms.key);
                self.bound.insert(terms.id, sharded);
                sharded
            }
            Request::Abandon(id)
            | Request::Renew(id)
            | Request::Release(id)
            | Request::Downgrade(id)
            | Request::Issue { id, .. } => self.bound.get(&id).copied().unwrap_or(0),
        };
        self.sharded[sharded].queue.submit(now, request);
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            if let Some(outcome) = self.next_outcome() {
                return Poll::Ready(outcome);
            }
            let unread = self.take_turn(cx);
            if let Some(outcome) = self.next_outcome() {
                return Poll::Ready(outcome);
            }
            if !unread && self.poll_sleep(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn chained_keys(&self) -> u64 {
        let marks = self.sharded.iter().map(ShardedConnection::chained_keys);
        marks.fold(0, |all, marks| all | marks)
    }

    fn is_quiet(&self) -> bool {
        self.sharded.iter().all(ShardedConnection::is_quiet)
    }
}

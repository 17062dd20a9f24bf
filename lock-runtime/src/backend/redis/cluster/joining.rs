//! How a manager connects to the nodes of a cluster: to all of them at first, and later to
//! those that come.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc;

use super::node_mailbox::NodeMailbox;
use super::routes::Routes;
use super::sharded_connection::{Node, ShardedConnection};
use super::{Cluster, ClusterAddress, ConnectionId};
use crate::backend::queries::Queries;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::connected;
use crate::backend::redis::protocol::names::{KeyNames, Layout};
use crate::backend::redis::transport::connect::Dialer;
use crate::backend::redis::transport::link::Link;
use crate::backend::redis::transport::way::Way;
use crate::backend::setup::Setup;
use crate::backend::transport::endpoint::Route;
use crate::backend::transport::ready::{in_time, late};
use crate::base::clock::{Moment, Sleep};
use crate::base::numbers::Numbered;
use crate::types::authority::Host;
use crate::types::error::LockError;

impl Cluster {
    /// Connects to every node, in time to some of them, or says why it cannot; a lazy manager leaves
    /// that to the polls that follow.
    pub(in crate::backend::redis) async fn connect(
        setup: &Setup,
        address: &ClusterAddress,
    ) -> Result<Self, LockError> {
        let server = Arc::from(address.to_string());
        let (sender, pushes) = mpsc::unbounded_channel();
        let mut sharded = Vec::with_capacity(setup.pool_size);
        for _ in 0..setup.pool_size {
            let names = KeyNames::of_setup(setup, Layout::Declared)
                .map_err(|error| LockError::unavailable_at(&server, error))?;
            sharded.push(ShardedConnection::new(names, setup.replicas > 0));
        }
        let now = setup.clock.now();
        let mut this = Self {
            address: address.clone(),
            setup: setup.clone(),
            sharded,
            routes: Routes::new(&address.seeds, now),
            trouble: None,
            bound: Numbered::default(),
            queries: Queries::new(),
            probes: 0,
            connections: BTreeMap::new(),
            next_connection: 0,
            asked: 0,
            is_open: false,
            sender,
            pushes,
            clock: setup.clock.clone(),
            sleep: Sleep::default(),
        };
        this.meet(now);
        let all_up = poll_fn(|cx| this.poll_all_up(cx));
        match in_time(setup, all_up).await {
            Ok(()) => Ok(this),
            // The others serve their locks, as they do where a node fails later.
            Err(None) if this.reaches_a_master() => Ok(this),
            Err(failed) => {
                let trouble = failed.or_else(|| this.latest_trouble());
                let trouble = trouble.unwrap_or_else(|| Trouble::not_now(&late(setup)));
                Err(connect_failed(&trouble, &server))
            }
        }
    }

    /// Fails at an error that will not go away by itself.
    fn poll_all_up(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Trouble>> {
        loop {
            let unread = self.take_turn(cx);
            if self.routes.is_known() && self.sharded.iter().all(ShardedConnection::is_up) {
                return Poll::Ready(Ok(()));
            }
            if let Some(trouble @ Trouble::Never(_)) = self.latest_trouble() {
                return Poll::Ready(Err(trouble));
            }
            if !unread && self.poll_sleep(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Why something is not connected; what will not go away by itself comes first.
    fn latest_trouble(&self) -> Option<Trouble> {
        let nodes = self
            .sharded
            .iter()
            .flat_map(|sharded| sharded.nodes.values());
        let down = nodes.filter(|node| !node.link.is_up());
        let mut all: Vec<_> = down
            .map(|node| &node.trouble)
            .chain(&self.trouble)
            .collect();
        all.sort_by_key(|trouble| !matches!(trouble, Trouble::Never(_)));
        all.first().map(|trouble| (*trouble).clone())
    }

    fn dialer(&self, host: &Host) -> Dialer {
        let route = Route::tcp(host, self.address.encrypted, &self.setup);
        let login = self.address.login.to(0);
        let sender = self.sender.clone();
        Dialer::new(Way::Known(route), login, &self.setup, sender).in_cluster()
    }

    /// Connects to nodes that are new, and leaves those that are gone.
    pub(super) fn meet(&mut self, now: Moment) {
        for sharded in &mut self.sharded {
            sharded.leave(now, &mut self.routes);
        }
        let nodes = &self.routes;
        self.connections
            .retain(|_, (_, node)| nodes.contains(*node));
        let known = self.routes.nodes();
        let hosts: Vec<_> = known.map(|(id, host)| (id, host.clone())).collect();
        for (id, host) in hosts {
            for number in 0..self.sharded.len() {
                if self.sharded[number].nodes.contains_key(&id) {
                    continue;
                }
                let dialer = self.dialer(&host);
                let connection = self.next_connection;
                self.next_connection += 1;
                self.connections
                    .insert(ConnectionId(connection), (number, id));
                let sharded = &mut self.sharded[number];
                let names = sharded.names.clone();
                let mailbox = NodeMailbox::new(self.setup.replicas > 0);
                let link = Link::new(connection, mailbox, names, dialer, now);
                sharded.nodes.insert(id, Node::new(link));
            }
        }
    }
}

/// Why a manager cannot connect: because of a setting, or of the cluster.
fn connect_failed(trouble: &Trouble, server: &Arc<str>) -> LockError {
    if trouble.is_no_cluster() {
        let reason = "the server is not part of a cluster: name it with `redis://`";
        return LockError::invalid("url", reason);
    }
    connected::connect_failed(trouble, server, 0)
}

//! The ways between the nodes of a cluster, each of which may be closed: what its nodes hear of each other goes here.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    net::{listener, runtime},
    proxy::{Direction, join},
};

/// The most nodes that a cluster may have.
pub(super) const MOST: usize = 12;

/// The proxies of all nodes' bus ports; a node is known by the address that it calls from.
#[derive(Debug)]
pub(super) struct Bus {
    /// What goes from a node to another.
    ways: Arc<[[Direction; MOST]; MOST]>,
    nodes: BTreeMap<usize, Door>,
}

/// Where a node is found by the others.
#[derive(Debug)]
struct Door {
    port: u16,
    target: u16,
    accepting: JoinHandle<()>,
}

impl Bus {
    /// One without nodes.
    pub(super) fn new() -> Self {
        Self {
            ways: Arc::default(),
            nodes: BTreeMap::new(),
        }
    }

    /// Puts a node there, whose own port for the others is `target`.
    pub(super) fn put(&mut self, node: usize, target: u16) {
        assert!(node < MOST, "a cluster of {MOST} nodes is large enough");
        let (listener, door) = listener();
        let ways = Arc::clone(&self.ways);
        let own: SocketAddr = (Ipv4Addr::LOCALHOST, target).into();
        let accepting = runtime().spawn(async move {
            let listener = TcpListener::from_std(listener).expect("a listening socket");
            while let Ok((peer, from)) = listener.accept().await {
                let (ways, from) = (Arc::clone(&ways), number(from.ip()));
                tokio::spawn(async move {
                    // Both nodes notice the end of a connection.
                    let _ = join(peer, own, &ways[from][node], &ways[node][from]).await;
                });
            }
        });
        self.nodes.insert(
            node,
            Door {
                port: door.port(),
                target,
                accepting,
            },
        );
    }

    /// Where the others find a node.
    pub(super) fn port(&self, node: usize) -> u16 {
        self.nodes[&node].port
    }

    /// Where it is found in truth.
    pub(super) fn target(&self, node: usize) -> u16 {
        self.nodes[&node].target
    }

    /// Keeps back whatever goes to a node and comes from it.
    pub(super) fn close(&self, node: usize) {
        self.each_way(node, Direction::hold);
    }

    /// Lets it through again, late.
    pub(super) fn open(&self, node: usize) {
        self.each_way(node, Direction::pass);
    }

    fn each_way(&self, node: usize, what: impl Fn(&Direction)) {
        for other in 0..MOST {
            what(&self.ways[node][other]);
            what(&self.ways[other][node]);
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// The address that a node calls from.
pub(super) fn address(node: usize) -> Ipv4Addr {
    let last = u8::try_from(node + 1).expect("few nodes");
    Ipv4Addr::new(127, 0, 1, last)
}

/// The node that calls from there.
fn number(address: IpAddr) -> usize {
    (0..MOST)
        .find(|node| IpAddr::from(self::address(*node)) == address)
        .unwrap_or_else(|| panic!("{address} is no node of a cluster"))
}

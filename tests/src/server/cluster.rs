//! A cluster of masters with a replica each, of the test's own: nodes may be killed, stopped, cut off, added and
//! removed.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use super::{
    Authority, RedisServer,
    bus::{self, Bus},
    clock::Clocks,
    launch::{ATTEMPTS, major_version},
    peers,
    slots::{Member, SLOTS, id, known_to},
};
use crate::{TIME_LIMIT, fixtures::eventually, net::free_port};

/// The first nodes are masters, and each of those after them follows one.
const MASTERS: usize = 3;
const NODES: usize = 2 * MASTERS;

/// Where a node keeps what it knows of the others.
const FILE: &str = "nodes.conf";

/// Longer than any test.
const CALM: Duration = Duration::from_secs(60);

/// How long a new cluster may take until it serves: a node that missed the greeting of another repeats it after half
/// of the timeout of nodes, which is longer than a test may take.
const SETTLES: Duration = Duration::from_secs(15);

/// How far a node's port for the others is from that for clients, where it cannot be chosen.
const TO_BUS_PORT: u16 = 10_000;

/// What is to be started: see [`ClusterFleet::builder`].
#[derive(Clone, Debug)]
pub struct ClusterBuilder {
    node_timeout: Duration,
    options: String,
    authority: Option<Arc<Authority>>,
    clocks: Option<Arc<Clocks>>,
}

/// Where a node listens.
#[derive(Clone, Copy, Debug)]
struct Ports {
    plain: u16,
    /// Where the others send clients: where it encrypts, if it does.
    announced: u16,
}

impl ClusterBuilder {
    /// How long a master is silent before its replica replaces it.
    pub fn node_timeout(mut self, silent: Duration) -> Self {
        self.node_timeout = silent;
        self
    }

    /// Sets an option of every node, such as `("cluster-require-full-coverage", "no")`.
    pub fn option(mut self, name: &str, value: &str) -> Self {
        self.options += &[name, " ", value, "\n"].concat();
        self
    }

    /// Sends clients to ports at which the nodes encrypt, with certificates of that authority.
    pub fn tls(mut self, authority: Authority) -> Self {
        self.authority = Some(Arc::new(authority));
        self
    }

    /// Gives each node one of these clocks.
    pub(crate) fn clocks(mut self, clocks: Clocks) -> Self {
        self.clocks = Some(clocks.into());
        self
    }

    /// Starts all nodes and waits until each can be replaced.
    pub async fn start(self) -> ClusterFleet {
        for _ in 0..ATTEMPTS {
            let Some(fleet) = self.try_start().await else {
                continue;
            };
            if timeout(SETTLES, fleet.settled()).await.is_ok() {
                return fleet;
            }
            for node in &fleet.nodes {
                let known: String = node.read(&["CLUSTER", "NODES"]).await;
                eprintln!("a cluster did not settle within {SETTLES:?}; {node:?} knows:\n{known}");
            }
        }
        panic!("no free ports for a cluster, or none that settles, in {ATTEMPTS} attempts");
    }

    async fn try_start(&self) -> Option<ClusterFleet> {
        let mut fleet = ClusterFleet {
            nodes: Vec::new(),
            bus: Bus::new(),
            settings: self.clone(),
        };
        let nodes: Vec<_> = (0..NODES).map(|it| (it, fleet.reserve(it))).collect();
        for (number, ports) in &nodes {
            let file = fleet.file(*number, &nodes, MASTERS);
            let node = fleet.launch(*ports, *number, file).await?;
            fleet.nodes.push(node);
        }
        Some(fleet)
    }
}

/// Three masters with a replica each; dropping it ends them.
#[derive(Debug)]
pub struct ClusterFleet {
    pub(super) nodes: Vec<RedisServer>,
    bus: Bus,
    settings: ClusterBuilder,
}

impl ClusterFleet {
    /// How many nodes there are at first.
    pub(crate) const NODES: usize = NODES;

    /// One whose masters are replaced on demand: on a busy machine a short silence means nothing.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// One with other settings.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder {
            node_timeout: CALM,
            options: String::new(),
            authority: None,
            clocks: None,
        }
    }

    /// The URL of the cluster, with some of its nodes.
    pub fn url(&self) -> String {
        let hosts: Vec<_> = self.nodes[..NODES]
            .iter()
            .map(|it| it.addr().to_string())
            .collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    /// The URL of a node at which it encrypts.
    pub fn tls_url(&self) -> String {
        format!("rediss+cluster://{}", self.nodes[0].tls_addr())
    }

    /// All nodes, also those that were removed.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// One of them, to be killed or restarted.
    pub fn node_mut(&mut self, number: usize) -> &mut RedisServer {
        &mut self.nodes[number]
    }

    /// The node that serves the key's slot, as the living nodes say.
    pub async fn master_of(&self, key: &str) -> usize {
        self.owner(self.slot_of(key).await).await
    }

    /// A key whose slot that node serves.
    pub async fn key_at(&self, node: usize) -> String {
        for number in 0.. {
            let key = format!("key-{number}");
            if self.master_of(&key).await == node {
                return key;
            }
        }
        unreachable!("every node has slots");
    }

    /// A replica of that master, one that lives if there is one.
    pub async fn replica_of(&self, master: usize) -> usize {
        let members = self.members().await;
        let replicas = members.iter().filter(|it| it.master == Some(master));
        let replica = replicas.min_by_key(|it| it.absent);
        replica
            .unwrap_or_else(|| panic!("{master} has no replica: {members:?}"))
            .number
    }

    /// Promotes the replica of a master, which need not live: without asking anybody, and so with the loss
    /// of what has not reached it; its number, once it is a master.
    pub async fn take_over(&self, master: usize) -> usize {
        self.replace(master, &["TAKEOVER"]).await
    }

    /// The same by an election, with a master that is well, which loses nothing. Not twice with the same replica: for
    /// four node timeouts Redis 7.0 counts the votes of the last election again.
    pub async fn hand_over(&self, master: usize) -> usize {
        self.replace(master, &[]).await
    }

    async fn replace(&self, master: usize, how: &[&str]) -> usize {
        let replica = self.replica_of(master).await;
        let failover = [&["CLUSTER", "FAILOVER"], how].concat();
        self.nodes[replica].cmd(&failover).await;
        self.promoted(replica).await;
        replica
    }

    /// Waits until a node is a master; it announces that to nobody but its peers.
    pub async fn promoted(&self, node: usize) {
        let node = &self.nodes[node];
        eventually(TIME_LIMIT, async || node.is_master().await).await;
    }

    /// Cuts a node off from all others, but not from clients.
    pub async fn cut_off(&self, node: usize) {
        assert!(major_version() >= 7, "older nodes call from one address");
        self.bus.close(node);
        self.nodes[node].shun_peers().await;
    }

    /// Keeps from a node what the others say to it and it to them; it serves its clients and replicas all the same.
    pub(crate) fn deafen(&self, node: usize) {
        self.bus.close(node);
    }

    /// Undoes it.
    pub(crate) fn undeafen(&self, node: usize) {
        self.bus.open(node);
    }

    /// Undoes [`ClusterFleet::cut_off`].
    pub async fn rejoin(&self, node: usize) {
        self.bus.open(node);
        self.nodes[node].admit_peers().await;
    }

    /// Starts an empty master and makes it known to all; its number.
    pub async fn add_node(&mut self) -> usize {
        let number = self.nodes.len();
        for _ in 0..ATTEMPTS {
            let ports = self.reserve(number);
            let alone = self.file(number, &[(number, ports)], 0);
            if let Some(node) = self.launch(ports, number, alone).await {
                self.nodes.push(node);
                self.introduce(number).await;
                return number;
            }
        }
        panic!("no free port for a node in {ATTEMPTS} attempts");
    }

    async fn introduce(&self, number: usize) {
        let all: Vec<_> = self.members().await.iter().map(|it| it.number).collect();
        let port = self.nodes[number].port().to_string();
        let bus = self.bus.port(number).to_string();
        // Handshakes that cross may fail, and are not tried again by the nodes.
        for _ in 0..ATTEMPTS {
            for member in &all {
                let meet = ["CLUSTER", "MEET", "127.0.0.1", &port, &bus];
                self.nodes[*member].cmd(&meet).await;
            }
            if timeout(TIME_LIMIT / 4, self.settled()).await.is_ok() {
                return;
            }
        }
        panic!("node {number} is not known to all after {ATTEMPTS} introductions");
    }

    /// Ends a node that serves no slots, and has all others forget it.
    pub async fn remove_node(&mut self, number: usize) {
        self.nodes[number].kill().await;
        for member in self.members().await {
            if member.number != number && !member.absent {
                let node = &self.nodes[member.number];
                node.cmd(&["CLUSTER", "FORGET", &id(number)]).await;
            }
        }
    }

    /// Waits until all living nodes know the same of each other, serve, and have their replicas.
    pub async fn settled(&self) {
        eventually(TIME_LIMIT, async || self.is_settled().await).await;
    }

    async fn is_settled(&self) -> bool {
        let (mut living, mut views) = (Vec::new(), Vec::new());
        for (number, node) in self.nodes.iter().enumerate() {
            if let Some(view) = known_to(node).await {
                living.push(number);
                views.push(view);
            }
        }
        let present = views[0].iter().filter(|it| !it.absent);
        let agreed = views.iter().all(|it| *it == views[0])
            && present.clone().map(|it| it.number).eq(living);
        if !agreed {
            return false;
        }
        for member in present.clone() {
            let node = &self.nodes[member.number];
            let state: String = node.read(&["CLUSTER", "INFO"]).await;
            let follows = |it: &&Member| it.master == Some(member.number);
            let followers = present.clone().filter(follows).count();
            let online = node.replicas_online().await;
            if !state.contains("cluster_state:ok")
                || online.is_some() != member.master.is_none()
                || online.is_some_and(|online| online < followers)
            {
                return false;
            }
        }
        true
    }

    /// Ports for a node to be started, and one for its bus.
    fn reserve(&mut self, number: usize) -> Ports {
        let port = free_port();
        let own = if major_version() >= 7 {
            free_port()
        } else {
            port + TO_BUS_PORT
        };
        self.bus.put(number, own);
        let announced = match self.settings.authority {
            Some(_) => free_port(),
            None => port,
        };
        let plain = port;
        Ports { plain, announced }
    }

    /// Starts a node that knows what the file says.
    async fn launch(&self, ports: Ports, number: usize, file: String) -> Option<RedisServer> {
        let timeout = self.settings.node_timeout.as_millis();
        let mut config = format!(
            "{}cluster-enabled yes\n\
             cluster-node-timeout {timeout}\n\
             cluster-announce-ip 127.0.0.1\n\
             cluster-announce-port {}\n\
             cluster-announce-bus-port {}\n\
             cluster-replica-validity-factor 0\n\
             cluster-migration-barrier 100\n{}",
            peers::config(),
            ports.announced,
            self.bus.port(number),
            self.settings.options,
        );
        if major_version() >= 7 {
            // Which is loopback too, but not for the server's own protection.
            let address = bus::address(number).to_string();
            let port = self.bus.target(number).to_string();
            config += &["protected-mode no\nbind-source-addr ", &address, "\n"].concat();
            config += &["cluster-port ", &port, "\n"].concat();
        }
        let mut node = RedisServer::builder().config(config).file(FILE, file);
        if let Some(clocks) = &self.settings.clocks {
            node = node.clock(clocks, number);
        }
        if let Some(authority) = &self.settings.authority {
            node = node.tls_at(ports.announced, authority);
            node = node.arg("--tls-auth-clients", "no");
        }
        node.start_at(ports.plain).await
    }

    /// What a node knows when it starts: itself and the others, so that nothing has to be found out.
    fn file(&self, number: usize, nodes: &[(usize, Ports)], masters: usize) -> String {
        let line = |(other, ports): &(usize, Ports)| {
            let port = ports.announced;
            let (id, bus) = (id(*other), self.bus.port(*other));
            let me = if *other == number { "myself," } else { "" };
            let role = role(*other, masters);
            format!("{id} 127.0.0.1:{port}@{bus} {me}{role}\n")
        };
        let lines: Vec<_> = nodes.iter().map(line).collect();
        format!(
            "{}vars currentEpoch {masters} lastVoteEpoch 0\n",
            lines.concat()
        )
    }
}

/// What stands of a node behind its addresses: the first so many are masters, with equal shares of the slots.
fn role(number: usize, masters: usize) -> String {
    if masters == 0 {
        return "master - 0 0 0 connected".to_owned();
    }
    let (master, slots) = (number % masters, usize::from(SLOTS));
    let epoch = master + 1;
    if number >= masters {
        return format!("slave {} 0 0 {epoch} connected", id(master));
    }
    let [first, end] = [master, epoch].map(|share| slots * share / masters);
    format!("master - 0 0 {epoch} connected {first}-{}", end - 1)
}

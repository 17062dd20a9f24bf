//! Three servers that agree, and the network between them.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{
    ZooKeeperServer, launch,
    log::{self, History},
};
use crate::{Proxy, TIME_LIMIT, fixtures::LOOK_EVERY, net::free_port, within};

const SERVERS: usize = 3;
/// How many ensembles are started until one elects a leader.
const ATTEMPTS: usize = 3;

/// A follower that is refused by a leader which has just been elected holds another election.
const STARTING: Duration = Duration::from_secs(2);

/// Three servers on loopback.
#[derive(Debug)]
pub struct ZooKeeperEnsemble {
    servers: Vec<ZooKeeperServer>,
    /// For each server, its ways to each other one, if it speaks to them through proxies.
    ways: Vec<Vec<(usize, Proxy)>>,
}

/// What servers have counted since they were started.
#[derive(Clone, Copy, Debug, Default)]
pub struct ZooKeeperTraffic {
    /// Packets of clients.
    pub requests: u64,
    /// Packets to clients: answers and events.
    pub answers: u64,
    /// The number of the last change.
    pub changes: u64,
}

/// How servers speak to each other.
#[derive(Clone, Copy, PartialEq)]
enum Between {
    Direct,
    /// Through proxies, but for elections.
    DataIsProxied,
    AllIsProxied,
}

impl ZooKeeperEnsemble {
    /// Three servers with a leader; `None`, with a notice, where they cannot be had. `tick` is the length of a tick in
    /// milliseconds. Each speaks to the others through proxies, so that it can be cut off from them.
    pub async fn start(test: &str, tick: u32) -> Option<Self> {
        Self::begin(test, &format!("tickTime={tick}\n"), Between::DataIsProxied).await
    }

    /// The same where followers and leader give each other up after so many ticks, as in production. None of them may
    /// be started again.
    pub async fn start_strict(test: &str, tick: u32, sync_limit: u32) -> Option<Self> {
        let settings = format!("tickTime={tick}\nsyncLimit={sync_limit}\ninitLimit=10\n");
        Self::begin(test, &settings, Between::AllIsProxied).await
    }

    /// The same with a property of their machines, such as `jute.maxbuffer=4096`.
    pub(crate) async fn start_limited(
        test: &str,
        tick: u32,
        sync_limit: u32,
        property: &str,
    ) -> Option<Self> {
        let settings = format!(
            "tickTime={tick}\nsyncLimit={sync_limit}\ninitLimit=10\n{}{property}\n",
            launch::PROPERTY
        );
        Self::begin(test, &settings, Between::AllIsProxied).await
    }

    /// The same without proxies, which take time, and with containers that last as long as in production. `syncs` says
    /// whether the servers wait for the disk.
    pub async fn start_direct(test: &str, tick: u32, syncs: bool) -> Option<Self> {
        let property = launch::PROPERTY;
        let syncs = if syncs { "yes" } else { "no" };
        let settings = format!(
            "tickTime={tick}\n{property}znode.container.checkIntervalMs=60000\n{property}zookeeper.forceSync={syncs}\n"
        );
        Self::begin(test, &settings, Between::Direct).await
    }

    async fn begin(test: &str, settings: &str, between: Between) -> Option<Self> {
        if !launch::is_installed(test) {
            return None;
        }
        // A port that was free may be taken by another program before the server opens it.
        for _ in 0..ATTEMPTS {
            let this = Self::spawn(settings, between).await;
            if this.is_ready_within(2 * TIME_LIMIT).await {
                return Some(this);
            }
        }
        panic!("no ensemble has elected a leader");
    }

    async fn is_ready_within(&self, limit: Duration) -> bool {
        let ready = async {
            for server in &self.servers {
                launch::ready(server.addr()).await;
            }
        };
        timeout(limit, ready).await.is_ok()
    }

    async fn spawn(settings: &str, between: Between) -> Self {
        let ports = |_| [free_port(), free_port(), free_port()];
        let ports: Vec<[u16; 3]> = (0..SERVERS).map(ports).collect();
        let (mut servers, mut ways) = (Vec::new(), Vec::new());
        for (own, [port, ..]) in ports.iter().enumerate() {
            let mut configuration = format!("{settings}clientPort={port}\n");
            let mut to_others = Vec::new();
            for (number, [_, quorum, election]) in ports.iter().enumerate() {
                let mut through_proxy = |port: u16| {
                    let server = (Ipv4Addr::LOCALHOST, port).into();
                    let way = Proxy::start_early(server, STARTING);
                    let port = way.addr().port();
                    to_others.push((number, way));
                    port
                };
                let (mut quorum, mut election) = (*quorum, *election);
                if between != Between::Direct && number != own {
                    quorum = through_proxy(quorum);
                }
                if between == Between::AllIsProxied && number != own {
                    // A server connects to the address that a server with a smaller number has sent, and bypasses
                    // the proxy.
                    let is_asked = number < own;
                    election = if is_asked {
                        through_proxy(election)
                    } else {
                        free_port()
                    };
                }
                let line = format!("server.{number}=127.0.0.1:{quorum}:{election}\n");
                configuration.push_str(&line);
            }
            let directory = launch::directory(&configuration);
            let id = directory.path().join("data/myid");
            std::fs::write(id, own.to_string()).expect("a file");
            servers.push(ZooKeeperServer {
                process: launch::process(&directory).await,
                port: *port,
                secure_port: 0,
                directory,
            });
            ways.push(to_others);
        }
        Self { servers, ways }
    }

    /// The URL of locks on all of them.
    pub fn url(&self) -> String {
        url(self.servers.iter())
    }

    /// The URL of locks on one of them.
    pub fn url_of(&self, number: usize) -> String {
        url(self.servers[number..].iter().take(1))
    }

    /// The URL of locks on all but one of them.
    pub fn url_without(&self, number: usize) -> String {
        let others = self.servers.iter().enumerate();
        url(others.filter(|(it, _)| *it != number).map(|(_, it)| it))
    }

    /// Where clients find each.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(ZooKeeperServer::addr).collect()
    }

    /// One of them.
    pub fn server(&mut self, number: usize) -> &mut ZooKeeperServer {
        &mut self.servers[number]
    }

    /// Which of them leads.
    pub async fn leader(&self) -> usize {
        let leader = async {
            loop {
                for (number, server) in self.servers.iter().enumerate() {
                    let state = state(server.addr()).await.unwrap_or_default();
                    if state.contains("Mode: leader") {
                        return number;
                    }
                }
                sleep(LOOK_EVERY).await;
            }
        };
        // An election on a busy machine.
        within(3 * TIME_LIMIT, leader).await
    }

    /// What clients have sent and were sent so far, and how many changes there were.
    pub async fn traffic(&self) -> ZooKeeperTraffic {
        let mut traffic = ZooKeeperTraffic::default();
        for server in &self.servers {
            let state = state(server.addr()).await.expect("the server answers");
            let said = |name| state.lines().find_map(|it| it.strip_prefix(name));
            let count = |name| said(name).and_then(|it| it.parse::<u64>().ok());
            traffic.requests += count("Received: ").unwrap_or_default();
            traffic.answers += count("Sent: ").unwrap_or_default();
            let changes = said("Zxid: 0x").map(|it| u64::from_str_radix(it, 16));
            traffic.changes = traffic
                .changes
                .max(changes.and_then(Result::ok).unwrap_or(0));
        }
        traffic
    }

    /// What became of all nodes, in the order of the ensemble.
    pub fn history(&self) -> History {
        log::agreed(&self.servers)
    }

    /// One that follows.
    pub async fn follower(&self) -> usize {
        (self.leader().await + 1) % SERVERS
    }

    /// Waits until sessions can be opened at a server.
    pub async fn serves(&self, number: usize) {
        launch::ready(self.servers[number].addr()).await;
    }

    /// Lets nothing through between a server and the others, which are not notified.
    pub fn cut_off(&self, server: usize) {
        for way in self.ways_of(server) {
            way.requests().hold();
            way.replies().hold();
        }
    }

    /// Lets everything through again.
    pub fn join(&self, server: usize) {
        for way in self.ways_of(server) {
            way.requests().pass();
            way.replies().pass();
        }
    }

    /// The ways from a server to the others, and theirs to it.
    fn ways_of(&self, server: usize) -> impl Iterator<Item = &Proxy> {
        let ways = self.ways.iter().enumerate();
        let ways = ways.flat_map(|(from, ways)| ways.iter().map(move |(to, way)| (from, *to, way)));
        ways.filter(move |(from, to, _)| [*from, *to].contains(&server))
            .map(|(.., way)| way)
    }
}

fn url<'a>(servers: impl Iterator<Item = &'a ZooKeeperServer>) -> String {
    let hosts: Vec<_> = servers.map(|it| it.addr().to_string()).collect();
    format!("zookeeper://{}", hosts.join(","))
}

/// What a server says of itself.
async fn state(addr: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(addr).await?;
    stream.write_all(b"srvr").await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

//! A master, its replicas and its sentinels, of the test's own: the master may be killed, stopped or cut off.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use redis::{AsyncConnectionConfig, PushInfo, PushKind, aio::MultiplexedConnection};
use tokio::{sync::mpsc, time::timeout};

use super::{
    RedisServer,
    clock::Clocks,
    launch::{ATTEMPTS, major_version},
    peers::{self, PEERS},
};
use crate::{
    LONG, TIME_LIMIT,
    fixtures::{eventually, within},
    net::free_port,
};

/// The name by which the sentinels know the master.
const SERVICE: &str = "locks";
/// One of them is the first master.
const NODES: usize = 3;
const SENTINELS: usize = 3;
/// How many sentinels have to find the master down.
const QUORUM: usize = 2;
/// Longer than any test.
const CALM: Duration = Duration::from_secs(60);
/// How long a sentinel may take to answer, before another one is asked.
const ANSWER: Duration = Duration::from_millis(500);

/// Sentinel looks every second or ten otherwise (Redis 7). It takes a replica that it has not heard of for some of
/// these periods for dead, so they are long enough for a busy machine.
const BRISK: [(&str, &str); 5] = [
    ("INFO-PERIOD", "500"),
    ("PING-PERIOD", "300"),
    ("ASK-PERIOD", "200"),
    ("PUBLISH-PERIOD", "200"),
    // A machine that stood still is no reason to do nothing for half a minute.
    ("TILT-PERIOD", "1000"),
];

/// What is to be started: see [`SentinelFleet::builder`].
#[derive(Debug)]
pub struct SentinelBuilder {
    down_after: Duration,
    options: String,
    clocks: Option<Arc<Clocks>>,
}

impl SentinelBuilder {
    /// How long a master is silent before the sentinels replace it.
    pub fn down_after(mut self, silent: Duration) -> Self {
        self.down_after = silent;
        self
    }

    /// Sets an option of every master and replica, such as `("min-replicas-to-write", "1")`.
    pub fn option(mut self, name: &str, value: &str) -> Self {
        self.options += &[name, " ", value, "\n"].concat();
        self
    }

    /// Gives each master and replica one of these clocks.
    pub(crate) fn clocks(mut self, clocks: Clocks) -> Self {
        self.clocks = Some(clocks.into());
        self
    }

    /// Starts everything and waits until a failover is possible.
    pub async fn start(self) -> SentinelFleet {
        for _ in 0..ATTEMPTS {
            if let Some(fleet) = self.try_start().await {
                fleet.hurry().await;
                fleet.settled().await;
                return fleet;
            }
        }
        panic!("no free ports for sentinels in {ATTEMPTS} attempts");
    }

    async fn try_start(&self) -> Option<SentinelFleet> {
        let nodes: Vec<u16> = (0..NODES).map(|_| free_port()).collect();
        let sentinels: Vec<u16> = (0..SENTINELS).map(|_| free_port()).collect();
        let mut fleet = SentinelFleet {
            nodes: Vec::new(),
            sentinels: Vec::new(),
        };
        for number in 0..NODES {
            fleet.nodes.push(self.node(&nodes, number).await?);
        }
        for number in 0..SENTINELS {
            let config = self.sentinel(number, &nodes, &sentinels);
            let sentinel = RedisServer::builder().sentinel(config);
            fleet
                .sentinels
                .push(sentinel.start_at(sentinels[number]).await?);
        }
        Some(fleet)
    }

    async fn node(&self, ports: &[u16], number: usize) -> Option<RedisServer> {
        let (master, port) = (ports[0], ports[number]);
        let mut config = peers::config() + &self.options;
        if port != master {
            config += &["replicaof 127.0.0.1 ", &master.to_string()].concat();
        }
        let mut node = RedisServer::builder().config(config);
        if let Some(clocks) = &self.clocks {
            node = node.clock(clocks, number);
        }
        node.start_at(port).await
    }

    /// What a sentinel knows when it starts: everybody, so that nothing has to be found out.
    fn sentinel(&self, number: usize, nodes: &[u16], sentinels: &[u16]) -> String {
        let master = nodes[0];
        let down_after = self.down_after.as_millis();
        let known = |what: &str, said: String| format!("{what} {SERVICE} {said}");
        let mut config = vec![
            format!("myid {}", id(number)),
            known("monitor", format!("127.0.0.1 {master} {QUORUM}")),
            known("auth-user", PEERS.to_owned()),
            known("auth-pass", PEERS.to_owned()),
            known("down-after-milliseconds", down_after.to_string()),
            known("failover-timeout", "2000".to_owned()),
            known("parallel-syncs", NODES.to_string()),
        ];
        for replica in &nodes[1..] {
            config.push(known("known-replica", format!("127.0.0.1 {replica}")));
        }
        for (other, port) in sentinels.iter().enumerate() {
            if other != number {
                let said = format!("127.0.0.1 {port} {}", id(other));
                config.push(known("known-sentinel", said));
            }
        }
        let lines: Vec<_> = config.iter().map(|it| format!("sentinel {it}\n")).collect();
        lines.concat()
    }
}

/// A sentinel's name for itself.
fn id(number: usize) -> String {
    format!("{:040x}", number + 1)
}

/// Three servers, one of them the master, and three sentinels; dropping it ends them.
#[derive(Debug)]
pub struct SentinelFleet {
    nodes: Vec<RedisServer>,
    sentinels: Vec<RedisServer>,
}

impl SentinelFleet {
    /// How many masters and replicas there are.
    pub(crate) const NODES: usize = NODES;
    /// What URLs end with.
    pub(crate) const PATH: &str = "/locks";

    /// One whose master is replaced on demand: on a busy machine a short silence means nothing.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// One with other settings.
    pub fn builder() -> SentinelBuilder {
        SentinelBuilder {
            down_after: CALM,
            options: String::new(),
            clocks: None,
        }
    }

    /// The URL of the master, whichever that is.
    pub fn url(&self) -> String {
        let hosts: Vec<_> = self
            .sentinels
            .iter()
            .map(|it| it.addr().to_string())
            .collect();
        format!("redis+sentinel://{}/{SERVICE}", hosts.join(","))
    }

    /// The masters and replicas; which is which, changes.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// One of them, to be killed or restarted.
    pub fn node_mut(&mut self, number: usize) -> &mut RedisServer {
        &mut self.nodes[number]
    }

    /// The sentinels.
    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// One of them, to be killed or restarted.
    pub fn sentinel_mut(&mut self, number: usize) -> &mut RedisServer {
        &mut self.sentinels[number]
    }

    /// The number of the node that is the master, as the best informed of the living sentinels says.
    pub async fn master(&self) -> usize {
        let mut best: Option<(u64, usize)> = None;
        for sentinel in &self.sentinels {
            if let Ok(Some(said)) = timeout(ANSWER, self.master_of(sentinel)).await {
                best = best.max(Some(said));
            }
        }
        best.expect("a sentinel answers").1
    }

    /// The epoch and the number of the master that a sentinel knows.
    async fn master_of(&self, sentinel: &RedisServer) -> Option<(u64, usize)> {
        let mut connection = sentinel.try_connection().await.ok()?;
        let mut command = redis::cmd("SENTINEL");
        command.arg("MASTER").arg(SERVICE);
        let said = command.query_async(&mut connection).await;
        let said: std::collections::HashMap<String, String> = said.ok()?;
        let port = said["port"].parse().ok()?;
        Some((said["config-epoch"].parse().ok()?, self.number_of(port)))
    }

    fn number_of(&self, port: u16) -> usize {
        let number = self.nodes.iter().position(|node| node.port() == port);
        number.unwrap_or_else(|| panic!("no node is at port {port}"))
    }

    /// Listens to the living sentinels for new masters.
    pub async fn switches(&self) -> Switches {
        let (sender, pushes) = mpsc::unbounded_channel();
        let mut connections = Vec::new();
        for sentinel in &self.sentinels {
            let config = AsyncConnectionConfig::new().set_push_sender(sender.clone());
            let url = format!("{}?protocol=resp3", sentinel.url());
            let client = redis::Client::open(url).expect("a URL");
            let connecting = client.get_multiplexed_async_connection_with_config(&config);
            if let Ok(Ok(mut connection)) = timeout(ANSWER, connecting).await
                && connection.subscribe("+switch-master").await.is_ok()
            {
                connections.push(connection);
            }
        }
        assert!(!connections.is_empty(), "no sentinel listens");
        Switches {
            pushes,
            _connections: connections,
        }
    }

    /// Has the sentinels replace the master, whether it lives or not, with the loss of what has not reached the
    /// replicas; the number of the new one, once it has been announced.
    pub async fn failover(&self) -> usize {
        let mut switches = self.switches().await;
        let sentinel = self.informed().await;
        sentinel.cmd(&["SENTINEL", "FAILOVER", SERVICE]).await;
        self.number_of(switches.next().await.port())
    }

    /// The sentinel that knows the master of all.
    async fn informed(&self) -> &RedisServer {
        let master = self.master().await;
        for sentinel in &self.sentinels {
            let known = timeout(ANSWER, self.master_of(sentinel)).await;
            if known.ok().flatten().is_some_and(|it| it.1 == master) {
                return sentinel;
            }
        }
        panic!("no sentinel answers any more");
    }

    /// The number of the node at that address.
    pub fn node_at(&self, address: SocketAddr) -> usize {
        self.number_of(address.port())
    }

    /// Cuts a node off from the others and from the sentinels, but not from clients.
    pub async fn cut_off(&self, node: usize) {
        self.nodes[node].shun_peers().await;
    }

    /// Undoes it.
    pub async fn rejoin(&self, node: usize) {
        self.nodes[node].admit_peers().await;
    }

    /// Waits until all nodes follow one master, all sentinels know it, and each would find another.
    pub async fn settled(&self) {
        // On a busy machine, an election may take several attempts.
        eventually(3 * TIME_LIMIT, async || self.is_settled().await).await;
    }

    async fn is_settled(&self) -> bool {
        let mut masters = Vec::new();
        for sentinel in &self.sentinels {
            let quorum = ["SENTINEL", "CKQUORUM", SERVICE];
            if sentinel.try_cmd(&quorum).await.is_err() || !knows_replicas(sentinel).await {
                return false;
            }
            masters.extend(self.master_of(sentinel).await);
        }
        let agreed = masters.len() == SENTINELS && masters.iter().all(|it| *it == masters[0]);
        agreed && self.nodes[masters[0].1].replicas_online().await == Some(NODES - 1)
    }

    /// Makes the sentinels look more often.
    async fn hurry(&self) {
        if major_version() < 7 {
            return;
        }
        for sentinel in &self.sentinels {
            for (name, period) in BRISK {
                sentinel.cmd(&["SENTINEL", "DEBUG", name, period]).await;
            }
        }
    }
}

/// Whether a sentinel would find one among all replicas to be the next master.
async fn knows_replicas(sentinel: &RedisServer) -> bool {
    let replicas: Vec<std::collections::HashMap<String, String>> =
        sentinel.read(&["SENTINEL", "REPLICAS", SERVICE]).await;
    let well = replicas
        .iter()
        .filter(|it| it["flags"] == "slave" && it["master-link-status"] == "ok");
    well.count() == NODES - 1
}

/// Hears of new masters from [`SentinelFleet::switches`] on.
#[derive(Debug)]
pub struct Switches {
    pushes: mpsc::UnboundedReceiver<PushInfo>,
    // Closed, they would send nothing.
    _connections: Vec<MultiplexedConnection>,
}

impl Switches {
    /// The next new master that a sentinel announces; all of them announce each. On a busy machine they try several
    /// times.
    pub async fn next(&mut self) -> SocketAddr {
        within(LONG, async {
            loop {
                let push = self
                    .pushes
                    .recv()
                    .await
                    .expect("the sentinels are listened to");
                if push.kind == PushKind::Message {
                    let (_, said): (String, String) =
                        redis::from_redis_value(redis::Value::Array(push.data)).expect("a message");
                    let words: Vec<_> = said.split(' ').collect();
                    let [_, _, _, host, port] = words[..] else {
                        panic!("no switch of a master: {said}");
                    };
                    return format!("{host}:{port}").parse().expect("an address");
                }
            }
        })
        .await
    }
}

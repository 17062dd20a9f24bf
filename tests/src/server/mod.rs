//! A Redis server of the test's own, which it may stop, kill and restart.

mod bus;
mod certificates;
mod clock;
mod cluster;
mod fake_sentinel;
mod launch;
mod peers;
mod redlock;
mod sentinel;
mod shared;
mod slots;

use std::{
    ffi::OsString,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use redis::{AsyncConnectionConfig, Value, aio::MultiplexedConnection};
use tempfile::TempDir;

pub use self::certificates::{Authority, Identity};
pub(crate) use self::clock::{Clock, Clocks};
pub use self::cluster::{ClusterBuilder, ClusterFleet};
pub use self::fake_sentinel::FakeSentinel;
pub use self::launch::RedisServerBuilder;
use self::launch::start;
pub use self::redlock::RedlockFleet;
pub use self::sentinel::{SentinelBuilder, SentinelFleet, Switches};
pub use self::shared::{SharedCluster, SharedSentinels};
use crate::{TIME_LIMIT, process::Process};

/// The file name of the server's Unix socket.
const SOCKET: &str = "redis.sock";

/// A running server on loopback and on a Unix socket, with a directory of its own; dropping it ends it.
#[derive(Debug)]
pub struct RedisServer {
    // The process is dropped, and so ended, before its directory.
    process: Process,
    environment: Vec<OsString>,
    args: Vec<OsString>,
    port: u16,
    tls_port: Option<u16>,
    password: Option<String>,
    directory: TempDir,
    clock: Option<Clock>,
}

impl RedisServer {
    /// A server that keeps nothing on disk and asks for no password.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// A server with other settings. The environment's `REDIS_SERVER` names another binary than `redis-server`.
    pub fn builder() -> RedisServerBuilder {
        RedisServerBuilder::default()
    }

    /// The server's URL, without a password.
    pub fn url(&self) -> String {
        format!("redis://{}", self.addr())
    }

    /// The server's URL for `user`; an empty name is the default user.
    pub fn url_with_user(&self, user: &str, password: &str) -> String {
        format!("redis://{user}:{password}@{}", self.addr())
    }

    /// The URL of the server's Unix socket.
    pub fn unix_url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// The server's Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join(SOCKET)
    }

    /// Where it keeps what it keeps.
    fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Where the server listens.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Where it listens for encrypted connections.
    pub fn tls_addr(&self) -> SocketAddr {
        let port = self.tls_port.expect("a server that encrypts");
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// The port the server listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's process id; another one after a restart.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Stops the server with its connections open, as if its machine hung (`SIGSTOP`).
    pub fn stop(&self) {
        self.process.stop();
    }

    /// Lets a stopped server go on.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Ends the server at once, as a crash would (`SIGKILL`).
    pub async fn kill(&mut self) {
        self.process.kill().await;
    }

    /// Kills the server, where it still runs, and starts it again with the same port, directory and settings.
    pub async fn restart(&mut self) {
        self.kill().await;
        self.process = start(&self.environment, &self.args)
            .await
            .unwrap_or_else(|log| panic!("the server did not start again:\n{log}"));
    }

    /// A connection for looking at the server and preparing it, with all rights.
    pub async fn connection(&self) -> MultiplexedConnection {
        must_connect(self.try_connection().await)
    }

    async fn try_connection(&self) -> redis::RedisResult<MultiplexedConnection> {
        let url = match &self.password {
            Some(password) => self.url_with_user("", password),
            None => self.url(),
        };
        try_connect(&url).await
    }

    /// Sends one command on a connection of its own; panics when the server answers with an error.
    pub async fn cmd(&self, words: &[&str]) -> Value {
        self.try_cmd(words)
            .await
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// The same.
    ///
    /// # Errors
    ///
    /// What the server answers, or that it cannot be reached.
    pub async fn try_cmd(&self, words: &[&str]) -> redis::RedisResult<Value> {
        let mut command = redis::Cmd::new();
        command.arg(words);
        command.query_async(&mut self.try_connection().await?).await
    }

    /// The names of the keys that match a glob pattern, sorted.
    pub async fn keys(&self, pattern: &str) -> Vec<String> {
        let mut keys: Vec<String> = self.read(&["KEYS", pattern]).await;
        keys.sort();
        keys
    }

    /// Those of the keys that match a pattern which would stay for ever, sorted.
    pub async fn without_ttl(&self, pattern: &str) -> Vec<String> {
        let mut lasting = Vec::new();
        for key in self.keys(pattern).await {
            if self.cmd(&["PTTL", &key]).await == Value::Int(-1) {
                lasting.push(key);
            }
        }
        lasting
    }

    /// How often `command` (in lower case) was called since the server started or `CONFIG RESETSTAT`.
    pub async fn calls(&self, command: &str) -> u64 {
        let statistics: String = self.read(&["INFO", "commandstats"]).await;
        let prefix = format!("cmdstat_{command}:calls=");
        let count = statistics
            .lines()
            .find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
        count.map_or(0, |count| count.parse().expect("a count of calls"))
    }

    /// Closes every client's connection; the clients learn of it from the closed socket.
    pub async fn kill_all_clients(&self) {
        for kind in ["normal", "pubsub"] {
            self.cmd(&["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"])
                .await;
        }
    }

    /// What one command answers, on a connection of its own.
    pub(crate) async fn read<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        redis::from_redis_value(self.cmd(words).await)
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }
}

/// A connection that waits long enough for a busy machine.
pub(crate) async fn connect(url: &str) -> MultiplexedConnection {
    must_connect(try_connect(url).await)
}

fn must_connect(outcome: redis::RedisResult<MultiplexedConnection>) -> MultiplexedConnection {
    outcome.unwrap_or_else(|error| panic!("cannot inspect the server: {error}"))
}

async fn try_connect(url: &str) -> redis::RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(TIME_LIMIT))
        .set_response_timeout(Some(TIME_LIMIT));
    redis::Client::open(url)?
        .get_multiplexed_async_connection_with_config(&config)
        .await
}

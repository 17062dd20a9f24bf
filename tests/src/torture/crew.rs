//! The processes, the servers and the network that are tortured.

use std::{ops::Range, path::Path, time::Duration};

use redis::Value;
use tokio::task::JoinSet;

use super::{
    PROCESSES, Protection, Setting, TTL, earlier,
    history::{Event, Kind},
    lock_name,
    network::{self, Way},
    site::Site,
};
use crate::{ChainWatch, Chains, RedisServer, Worker, connect};

/// Everything that a fault may strike.
#[derive(Debug)]
pub(super) struct Crew {
    /// Those who take locks.
    pub(super) workers: Vec<Worker>,
    /// Where the locks are.
    pub(super) site: Site,
    /// The ways to it, each of some workers.
    pub(super) ways: Vec<Way>,
    /// What was seen that must not be.
    pub(super) violations: Vec<String>,
    /// When no majority of the servers was up.
    pub(super) closed: Vec<Range<Duration>>,
    /// Clients of the release before, where one server has all locks.
    pub(super) earlier: JoinSet<()>,
    watch: ChainWatch,
    /// What the URL says of the locks.
    query: String,
    register: RedisServer,
    program: String,
    directory: tempfile::TempDir,
}

impl Crew {
    /// Starts everything.
    pub(super) async fn start(setting: &Setting, protection: Protection) -> Self {
        let (site, ways) = network::lay(setting, protection.options()).await;
        let mut crew = Self {
            workers: Vec::new(),
            watch: ChainWatch::start(site.nodes()).await,
            site,
            ways,
            violations: Vec::new(),
            closed: Vec::new(),
            earlier: JoinSet::new(),
            query: protection.query(setting.servers, TTL),
            register: RedisServer::start().await,
            program: setting.program.clone(),
            directory: tempfile::tempdir().expect("a directory"),
        };
        if let Site::One(server) = &crew.site {
            let client = earlier::run(server.url(), crew.directory().to_owned());
            crew.earlier.spawn(client);
        }
        for number in 0..PROCESSES {
            let worker = crew.hire(number).await;
            crew.workers.push(worker);
        }
        crew
    }

    /// Kills a worker and starts another in its place.
    pub(super) async fn replace(&mut self, number: usize) {
        self.workers[number].kill().await;
        self.workers[number] = self.hire(number).await;
    }

    /// Where the histories are.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Takes a lock from its holders.
    pub(super) async fn force(&self, lock: &str) {
        let locks = connect(self.site.url()).await;
        let forced = locks.force_release(lock).await;
        forced.unwrap_or_else(|error| panic!("{lock} cannot be forced: {error}"));
        locks.shutdown().await;
    }

    /// A stolen key has its thief's value or has expired and gone on; it was not deleted before.
    pub(super) async fn check_thief(&mut self, key: &str) {
        let value = self.site.master_of(key).await.cmd(&["GET", key]).await;
        if value != Value::BulkString(b"thief".to_vec()) {
            self.violations
                .push(format!("{key}: a foreign value was removed: {value:?}"));
        }
    }

    /// Every key of a lock has a ttl.
    pub(super) async fn check_ttls(&mut self) {
        for master in self.site.masters().await {
            let keys = master.without_ttl("lock:{*").await;
            // But for the note of a node of a cluster, which is about no lock.
            for key in keys.iter().filter(|key| !key.contains("}:run:")) {
                self.violations.push(format!("{key} has no ttl"));
            }
        }
    }

    /// The fences whose writes to the register of a key were taken, in that order.
    pub(super) async fn writes(&self, key: usize) -> Vec<u64> {
        let log = format!("{}:log", lock_name(key));
        let value = self.register.cmd(&["LRANGE", &log, "0", "-1"]).await;
        redis::from_redis_value(value).expect("numbers")
    }

    /// What came of those to whom a lock was handed together with another one.
    pub(super) async fn chains(&self, events: &[Event]) -> Chains {
        self.watch.catch_up(self.site.nodes()).await;
        let entered = events.iter().filter(|event| event.kind == Kind::Enter);
        let entered: Vec<_> = entered
            .map(|event| (lock_name(event.grant.key), event.grant.fence))
            .collect();
        let entered = entered.iter().map(|(name, fence)| (name.as_str(), *fence));
        self.watch.chains(entered)
    }

    async fn hire(&self, number: usize) -> Worker {
        let directory = self.directory.path().to_string_lossy();
        // Not through the network, which is tortured.
        let register = self.register.unix_url();
        let way = self.ways.get(number % self.ways.len().max(1));
        let url = way.map_or_else(|| self.site.url(), Way::url) + &self.query;
        let args = ["load", &url, &register, &directory];
        match way {
            Some(way) => way.spawn(&self.program, &args).await,
            None => Worker::spawn(&self.program, args).await,
        }
    }
}

//! The processes, the servers and the network that are tortured.

use std::{ops::Range, path::Path, time::Duration};

use redis::Value;

use super::{
    PROCESSES, Protection, Setting, TTL, lock_name,
    network::{self, Way},
    site::Site,
};
use crate::{RedisServer, Worker};

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
            site,
            ways,
            violations: Vec::new(),
            closed: Vec::new(),
            query: protection.query(setting.servers, TTL),
            register: RedisServer::start().await,
            program: setting.program.clone(),
            directory: tempfile::tempdir().expect("a directory"),
        };
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

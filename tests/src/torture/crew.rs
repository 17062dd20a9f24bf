//! The processes, the server and the network that are tortured.

use std::path::Path;

use redis::Value;

use super::{
    PROCESSES, lock_name,
    network::{Medium, Way},
};
use crate::{RedisServer, Worker};

/// Everything that a fault may strike.
#[derive(Debug)]
pub struct Crew {
    /// Those who take locks.
    pub workers: Vec<Worker>,
    /// Where the locks are.
    pub server: RedisServer,
    /// The ways to it, each of some workers.
    pub(super) ways: Vec<Way>,
    /// What was seen that must not be.
    pub violations: Vec<String>,
    register: RedisServer,
    program: String,
    directory: tempfile::TempDir,
}

impl Crew {
    /// Starts everything; `program` is run again for each worker.
    pub async fn start(medium: Medium, program: &str) -> Self {
        let (server, ways) = Way::lay(medium).await;
        let mut crew = Self {
            workers: Vec::new(),
            server,
            ways,
            violations: Vec::new(),
            register: RedisServer::start().await,
            program: program.to_owned(),
            directory: tempfile::tempdir().expect("a directory"),
        };
        for number in 0..PROCESSES {
            let worker = crew.hire(number).await;
            crew.workers.push(worker);
        }
        crew
    }

    /// Kills a worker and starts another in its place.
    pub async fn replace(&mut self, number: usize) {
        self.workers[number].kill().await;
        self.workers[number] = self.hire(number).await;
    }

    /// Where the histories are.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A stolen key has its thief's value or has expired and gone on; it was not deleted before.
    pub async fn check_thief(&mut self, key: &str) {
        let value = self.server.cmd(&["GET", key]).await;
        if value != Value::BulkString(b"thief".to_vec()) {
            self.violations
                .push(format!("{key}: a foreign value was removed: {value:?}"));
        }
    }

    /// Every key of a lock has a ttl.
    pub async fn check_ttls(&mut self) {
        for key in self.server.without_ttl("lock:{*").await {
            self.violations.push(format!("{key} has no ttl"));
        }
    }

    /// The fences whose writes to the register of a key were taken, in that order.
    pub async fn writes(&self, key: usize) -> Vec<u64> {
        let log = format!("{}:log", lock_name(key));
        let value = self.register.cmd(&["LRANGE", &log, "0", "-1"]).await;
        redis::from_redis_value(value).expect("numbers")
    }

    async fn hire(&self, number: usize) -> Worker {
        let way = &self.ways[number % self.ways.len()];
        let directory = self.directory.path().to_string_lossy();
        // Not through the network, which is tortured.
        let register = self.register.unix_url();
        let args = ["load", &way.url(), &register, &directory];
        way.spawn(&self.program, &args).await
    }
}

//! A witness of critical sections in any number of processes: notes overlaps, and fences that did not grow.

use redis::{Script, aio::MultiplexedConnection};

use crate::server::{RedisServer, connect};

/// The list of violations.
const VIOLATIONS: &str = "violations";

/// The count of sections so far.
const SECTIONS: &str = "sections";

/// The register, kept on a server of its own; tasks share it by reference, processes by its URL.
#[derive(Debug)]
pub struct Register {
    connection: MultiplexedConnection,
    enter: Script,
    url: String,
    // Only the process that started the server has it, and ends it.
    server: Option<RedisServer>,
}

impl Register {
    /// An empty register.
    pub async fn start() -> Self {
        let server = RedisServer::start().await;
        let mut register = Self::join(&server.url()).await;
        register.server = Some(server);
        register
    }

    /// The register that another process started.
    pub async fn join(url: &str) -> Self {
        Self {
            connection: connect(url).await,
            enter: Script::new(include_str!("enter.lua")),
            url: url.to_owned(),
            server: None,
        }
    }

    /// What another process joins.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Enters a section of `key` with the fencing token of the lock that protects it.
    pub async fn enter(&self, key: &str, fence: u64) -> Section {
        let mut connection = self.connection.clone();
        let inside = format!("inside:{key}");
        let number = self
            .enter
            .key(&inside)
            .key(format!("fence:{key}"))
            .key(VIOLATIONS)
            .key(SECTIONS)
            .arg(key)
            .arg(fence)
            .invoke_async(&mut connection)
            .await
            .expect("the register answers");
        Section {
            connection,
            inside,
            number,
        }
    }

    /// Enters a section of `key` under a lock without fences, which the register numbers itself.
    pub async fn enter_unfenced(&self, key: &str) -> Section {
        let number = redis::cmd("INCR")
            .arg("numbers")
            .query_async(&mut self.connection.clone())
            .await
            .expect("the register answers");
        self.enter(key, number).await
    }

    /// What went wrong so far, a line for each.
    pub async fn violations(&self) -> Vec<String> {
        redis::cmd("LRANGE")
            .arg((VIOLATIONS, 0, -1))
            .query_async(&mut self.connection.clone())
            .await
            .expect("the register answers")
    }

    /// How many sections were entered so far.
    pub async fn sections(&self) -> u64 {
        let count: Option<u64> = redis::cmd("GET")
            .arg(SECTIONS)
            .query_async(&mut self.connection.clone())
            .await
            .expect("the register answers");
        count.unwrap_or(0)
    }
}

/// A task inside a critical section. Dropped without [`Section::leave`] it stays inside for good.
#[derive(Debug)]
#[must_use = "the section lasts until `leave`"]
pub struct Section {
    connection: MultiplexedConnection,
    inside: String,
    number: u64,
}

impl Section {
    /// Leaves the section.
    pub async fn leave(mut self) {
        let () = redis::cmd("SREM")
            .arg((self.inside, self.number))
            .query_async(&mut self.connection)
            .await
            .expect("the register answers");
    }
}

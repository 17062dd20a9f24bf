//! The server of a run, and what the model has to know of it.

use super::{KEYS, RECOVERY};
use crate::{ChainWatch, Chains, PostgresServer, RedisServer, SCHEMA, eventually};

/// Which server there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// One of Redis.
    Redis,
    /// One of PostgreSQL.
    Postgres,
}

impl Store {
    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "redis" => Some(Self::Redis),
            "postgres" => Some(Self::Postgres),
            _ => None,
        }
    }

    pub(super) fn counted(self) -> Counted {
        match self {
            Self::Redis => Counted::Together,
            Self::Postgres => Counted::ForEachLock,
        }
    }
}

/// What a number of a fencing token is unique among.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// All locks.
    Together,
    /// The acquisitions of one lock.
    ForEachLock,
}

/// Such a server, running.
#[derive(Debug)]
pub(super) enum Server {
    Redis(Box<RedisServer>, Box<ChainWatch>),
    Postgres(Box<PostgresServer>),
}

impl Server {
    pub(super) async fn start(store: Store) -> Self {
        match store {
            Store::Redis => {
                let server = RedisServer::start().await;
                let watch = ChainWatch::start([&server]).await;
                Self::Redis(Box::new(server), Box::new(watch))
            }
            Store::Postgres => {
                let server = PostgresServer::start("the model").await;
                let server = server.expect("PostgreSQL can be had: see the notice");
                Self::Postgres(Box::new(server))
            }
        }
    }

    pub(super) fn url(&self) -> String {
        match self {
            Self::Redis(server, _) => server.url(),
            Self::Postgres(server) => server.url(),
        }
    }

    /// Loses the holders of a lock, and notifies nobody.
    pub(super) async fn forget(&self, key: &str) {
        match self {
            Self::Redis(server, _) => {
                server.cmd(&["DEL", &RedisServer::owner_key(key)]).await;
            }
            Self::Postgres(server) => {
                let name = RedisServer::owner_key(key);
                let ended = "UPDATE lock SET token = NULL, session = NULL, expires = '-infinity'";
                let forget = format!(
                    "SET search_path = {SCHEMA}; {ended} WHERE name = '{name}'; \
                     DELETE FROM sharer WHERE name = '{name}'"
                );
                server.cmd(&forget).await;
            }
        }
    }

    /// The fence of the last grant, of this lock or of any.
    pub(super) async fn fence(&self, key: &str) -> u64 {
        match self {
            Self::Redis(server, _) => server.read(&["GET", RedisServer::FENCE_KEY]).await,
            Self::Postgres(server) => {
                let name = RedisServer::owner_key(key);
                let fence =
                    format!("SELECT max(fence + chain) FROM {SCHEMA}.lock WHERE name = '{name}'");
                let fence = server.cmd(&fence).await;
                fence.first().map_or(0, |it| it.parse().expect("a number"))
            }
        }
    }

    /// Closes the connections of a process.
    pub(super) async fn cut(&self, process: u32) {
        match self {
            Self::Redis(server, _) => {
                let clients: String = server.read(&["CLIENT", "LIST"]).await;
                let name = format!(" name=lock-runtime:{process}@");
                for client in clients.lines().filter(|client| client.contains(&name)) {
                    let number = client.split([' ', '=']).nth(1).expect("a number");
                    // It may be gone.
                    let kill = ["CLIENT", "KILL", "ID", number];
                    let _gone = server.try_cmd(&kill).await;
                }
            }
            Self::Postgres(server) => {
                let terminate = format!(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE application_name LIKE 'lock-runtime:{process}@%'"
                );
                server.cmd(&terminate).await;
            }
        }
    }

    /// The chains that were formed, if the store shows them; and for each grant its key and fence.
    pub(super) async fn chains<'a>(
        &self,
        grants: impl Iterator<Item = (&'a str, u64)>,
    ) -> Option<Chains> {
        match self {
            Self::Redis(server, watch) => {
                watch.catch_up([&**server]).await;
                Some(watch.chains(grants))
            }
            Self::Postgres(_) => None,
        }
    }

    /// The entries that would stay for ever.
    pub(super) async fn lasting(&self) -> Vec<String> {
        match self {
            Self::Redis(server, _) => server.without_ttl("lock:{*").await,
            Self::Postgres(server) => {
                let lasting = format!(
                    "SELECT name FROM {SCHEMA}.lock WHERE expires > clock_timestamp() + interval '1 hour'"
                );
                server.cmd(&lasting).await
            }
        }
    }

    /// Returns when nothing of a lock is left.
    pub(super) async fn is_empty(&self) {
        let empty = async || match self {
            Self::Redis(server, _) => server.keys("lock:{*").await.is_empty(),
            Self::Postgres(server) => server.traces(SCHEMA).await.is_empty(),
        };
        eventually(RECOVERY, empty).await;
    }

    /// What must not have happened on the server.
    pub(super) async fn trouble(&self) -> Option<String> {
        let Self::Postgres(server) = self else {
            return None;
        };
        let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'";
        let deadlocks = server.cmd(deadlocks).await.remove(0);
        (deadlocks != "0").then(|| format!("caused {deadlocks} deadlocks over {KEYS} keys"))
    }
}

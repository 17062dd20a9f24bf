//! A primary and its standby, which may take its place.

use std::net::SocketAddr;

use super::{PostgresServer, PostgresServerBuilder};

/// What happens to a primary before its standby takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is killed, and what the standby has not received is lost.
    Killed,
    /// It is shut down, when the standby has received everything.
    ShutDown,
    /// It lives on, and clients reach it.
    LeftAlive,
}

/// Two servers with fixed addresses, of which one is the primary.
#[derive(Debug)]
pub struct PostgresPair {
    servers: [PostgresServer; 2],
    primary: usize,
}

impl PostgresPair {
    /// A primary that does not wait for its standby; `None`, with a notice, where servers cannot be had.
    pub async fn start(test: &str) -> Option<Self> {
        Self::start_with(test, PostgresServer::builder()).await
    }

    /// A primary that confirms a commit when its standby has it on disk.
    pub async fn start_synchronous(test: &str) -> Option<Self> {
        let builder = PostgresServer::builder().option("synchronous_standby_names", "*");
        Self::start_with(test, builder).await
    }

    /// A primary with these settings, and a standby with the same.
    pub(crate) async fn start_with(test: &str, builder: PostgresServerBuilder) -> Option<Self> {
        let primary = builder.start(test).await?;
        let standby = primary.standby().await;
        Some(Self {
            servers: [primary, standby],
            primary: 0,
        })
    }

    /// A URL that names both.
    pub fn url(&self) -> String {
        let [one, other] = self.addresses();
        format!("postgres://postgres@{one},{other}/postgres")
    }

    /// Where they listen, in an order that stays.
    pub fn addresses(&self) -> [SocketAddr; 2] {
        self.servers.each_ref().map(PostgresServer::addr)
    }

    /// The place of the primary in that order.
    pub fn place(&self) -> usize {
        self.primary
    }

    /// The primary.
    pub fn primary(&self) -> &PostgresServer {
        &self.servers[self.primary]
    }

    /// One of both.
    pub fn server_mut(&mut self, place: usize) -> &mut PostgresServer {
        &mut self.servers[place]
    }

    /// Ends the primary and puts the standby in its place, which has no standby until [`Self::mend`].
    pub async fn fail_over(&mut self, fate: Fate) {
        let old = &mut self.servers[self.primary];
        match fate {
            Fate::Killed => old.kill().await,
            Fate::ShutDown => old.shut_down().await,
            Fate::LeftAlive => {}
        }
        self.primary = 1 - self.primary;
        self.primary().promote().await;
    }

    /// Puts a standby in the place of the old primary.
    pub async fn mend(&mut self) {
        let old = 1 - self.primary;
        self.servers[old].kill().await;
        let port = self.servers[old].addr().port();
        self.servers[old] = self.primary().standby_at(port).await;
    }
}

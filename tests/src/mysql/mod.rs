//! MySQL and MariaDB servers of the test's own, where the binaries are at hand.

mod launch;
mod peer;
mod programs;
mod shared;

use std::{
    ffi::OsString,
    net::{Ipv4Addr, SocketAddr},
};

use tempfile::TempDir;

pub use self::{launch::MysqlServerBuilder, peer::MysqlPeer, shared::MysqlHome};
use crate::{mysql_sql, process::Process};

/// The script that installs tables and procedures.
pub fn mysql_script() -> String {
    mysql_sql::script()
}

/// The database that each server has.
const DATABASE: &str = "shop";

/// A running server on loopback, with a directory of its own; dropping it ends it.
#[derive(Debug)]
pub struct MysqlServer {
    // The process is dropped, and so ended, before its directory.
    process: Process,
    command: Vec<OsString>,
    port: u16,
    directory: TempDir,
}

impl MysqlServer {
    /// A server whose user `root` needs no password; `None`, with a notice, where it cannot be had.
    pub async fn start(test: &str) -> Option<Self> {
        Self::builder().start(test).await
    }

    /// A server with other settings.
    pub fn builder() -> MysqlServerBuilder {
        MysqlServerBuilder::default()
    }

    /// The address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The URL of its database for the superuser.
    pub fn url(&self) -> String {
        self.url_at(self.addr())
    }

    /// The same through a proxy.
    pub fn url_at(&self, addr: SocketAddr) -> String {
        format!("mysql://root@{addr}/{DATABASE}")
    }

    /// A connection for looking at the server and preparing it, with all rights.
    pub async fn peer(&self) -> MysqlPeer {
        MysqlPeer::connect(self.addr(), DATABASE).await
    }

    /// Carries out a statement on a connection of its own; its first column.
    pub async fn cmd(&self, sql: &str) -> Vec<String> {
        self.peer().await.column(sql).await
    }

    /// Stops the server with its connections open, as if its machine hung.
    pub fn stop(&self) {
        self.process.stop();
    }

    /// Lets a stopped server go on.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Kills the server, where it still runs, and starts it again with its data.
    pub async fn restart(&mut self) {
        self.process.kill().await;
        self.process = launch::process(&self.command)
            .await
            .unwrap_or_else(|log| panic!("the server did not start again:\n{log}"));
    }
}

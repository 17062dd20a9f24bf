//! MySQL and MariaDB servers of the test's own, where the binaries are at hand.

mod launch;
mod peer;
mod programs;
mod shared;

use std::{
    ffi::OsString,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use rustix::process::Signal;
use tempfile::TempDir;

pub use self::{launch::MysqlServerBuilder, peer::MysqlPeer, shared::MysqlHome};
use crate::{disk::Disk, mysql_sql, process::Process, server::Clock};

/// The script that installs tables and procedures.
pub fn mysql_script() -> String {
    mysql_sql::script()
}

/// Its statements.
pub fn mysql_statements() -> Vec<String> {
    let script = mysql_script();
    let script = script.strip_prefix("DELIMITER //\n");
    let script = script.and_then(|it| it.strip_suffix("DELIMITER ;\n"));
    let statements = script
        .expect("a script for the client")
        .split_terminator("\n//\n");
    statements.map(String::from).collect()
}

/// The database that each server has.
const DATABASE: &str = "shop";

/// A running server on loopback, with a directory of its own; dropping it ends it.
#[derive(Debug)]
pub struct MysqlServer {
    // The process is dropped, and so ended, before its disk and its directory.
    process: Process,
    command: Vec<OsString>,
    port: u16,
    clock: Option<Clock>,
    disk: Option<Disk>,
    directory: TempDir,
    _scratch: TempDir,
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
        self.begin().await;
    }

    /// Shuts the server down and starts it again.
    pub async fn restart_cleanly(&mut self) {
        self.process.signal(Signal::TERM);
        self.process.wait().await;
        self.begin().await;
    }

    async fn begin(&mut self) {
        self.process = launch::process(&self.command)
            .await
            .unwrap_or_else(|log| panic!("the server did not start again:\n{log}"));
    }

    /// Whether the server answers.
    pub async fn is_up(&self) -> bool {
        let connected = MysqlPeer::try_connect(self.addr(), "root", DATABASE).await;
        match connected {
            Ok(mut peer) => peer.try_rows("SELECT 1").await.is_ok(),
            Err(_) => false,
        }
    }

    /// Ends all connections to its database, or with `QUERY` the statements that they wait for.
    pub async fn kill_connections(&self, what: &str) {
        Self::kill_others(&mut self.peer().await, what).await;
    }

    /// The same over this connection, which stays.
    pub async fn kill_others(peer: &mut MysqlPeer, what: &str) {
        let others = format!(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = '{DATABASE}' AND ID <> CONNECTION_ID()"
        );
        for id in peer.column(&others).await {
            // It may have ended by itself.
            let _ = peer.try_rows(&format!("KILL {what} {id}")).await;
        }
    }

    /// Leaves no room on its disk, which has to be [its own](MysqlServerBuilder::disk).
    pub fn fill_disk(&self) {
        self.own_disk().fill();
    }

    /// Makes room on its disk again.
    pub fn clear_disk(&self) {
        self.own_disk().clear();
    }

    fn own_disk(&self) -> &Disk {
        self.disk.as_ref().expect("a disk of its own")
    }

    /// Whether its clock can be moved.
    pub fn has_clock(&self) -> bool {
        self.clock.is_some()
    }

    /// Its clock jumps: it is ahead of the machine's by so much from now on.
    pub fn set_clock(&self, ahead: Duration) {
        let clock = self.clock.as_ref();
        clock.expect("a clock that can be moved").set(ahead);
    }
}

//! PostgreSQL servers of the test's own, where the binaries are at hand.

mod backup;
mod bouncer;
mod launch;
mod pair;
mod peer;
mod processes;
mod programs;
mod shared;
mod wraparound;

use std::{
    ffi::OsString,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;

pub(crate) use self::shared::tidy_up;
pub use self::{
    backup::Backup,
    bouncer::PgBouncer,
    launch::PostgresServerBuilder,
    pair::{Fate, PostgresPair},
    peer::{PostgresPeer, Rows, SqlError},
    shared::PostgresHome,
};
use self::{processes::Processes, programs::Programs};
use crate::{TIME_LIMIT, disk::Disk, eventually, net::free_port, postgres_sql, within};

/// The script that installs tables and functions in a schema.
pub fn postgres_script(schema: &str) -> String {
    postgres_sql::script(schema)
}

/// The schema of locks whose URL names none.
pub const SCHEMA: &str = "lock_runtime";

/// A running server on loopback and on a Unix socket, with a directory of its own; dropping it ends it.
#[derive(Debug)]
pub struct PostgresServer {
    // The processes are dropped, and so ended, before their disk and their directory.
    processes: Processes,
    command: Vec<OsString>,
    builder: PostgresServerBuilder,
    programs: &'static Programs,
    port: u16,
    disk: Option<Disk>,
    directory: TempDir,
}

impl PostgresServer {
    /// A server that trusts everybody; `None`, with a notice, where it cannot be had.
    pub async fn start(test: &str) -> Option<Self> {
        Self::builder().start(test).await
    }

    /// A server with other settings. The environment's `POSTGRES_BIN` names a folder with other binaries.
    pub fn builder() -> PostgresServerBuilder {
        PostgresServerBuilder::default()
    }

    /// Whether servers can be had; if not, a notice says that `test` is skipped.
    pub fn can_be_had(test: &str) -> bool {
        programs::find(test).is_some()
    }

    /// The address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The URL of its first database for the superuser.
    pub fn url(&self) -> String {
        self.url_at(self.addr())
    }

    /// The same through a proxy.
    pub fn url_at(&self, addr: SocketAddr) -> String {
        format!("postgres://postgres@{addr}/postgres")
    }

    /// The directory of its Unix socket.
    pub fn socket_directory(&self) -> &Path {
        self.directory.path()
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Leaves no room on its disk, which has to be [its own](PostgresServerBuilder::disk).
    pub fn fill_disk(&self) {
        self.own_disk().fill();
    }

    /// Makes room on its disk again.
    pub fn clear_disk(&self) {
        self.own_disk().clear();
    }

    /// Whether its clock can be moved.
    pub(crate) fn has_clock(&self) -> bool {
        self.builder.clock.is_some()
    }

    /// Its clock jumps: it is ahead of the machine's by so much from now on, as that of its standbys is.
    pub(crate) fn set_clock(&self, ahead: Duration) {
        let clock = self.builder.clock.as_ref();
        clock.expect("a clock that can be moved").set(ahead);
    }

    fn own_disk(&self) -> &Disk {
        self.disk.as_ref().expect("a disk of its own")
    }

    /// The postmaster's process id; another one after a restart.
    pub fn pid(&self) -> u32 {
        self.processes.pid()
    }

    /// A connection for looking at the server and preparing it, with all rights.
    pub async fn peer(&self) -> PostgresPeer {
        PostgresPeer::connect(self.addr()).await
    }

    /// Carries out a statement on a connection of its own; its first column.
    pub async fn cmd(&self, sql: &str) -> Vec<String> {
        self.peer().await.column(sql).await
    }

    /// Stops the server with its connections open, as if its machine hung.
    pub fn stop(&mut self) {
        self.processes.stop();
    }

    /// Lets a stopped server go on.
    pub fn resume(&mut self) {
        self.processes.resume();
    }

    /// Ends it at once, as a crash would.
    pub async fn kill(&mut self) {
        self.processes.kill().await;
    }

    /// Kills the server, where it still runs, and starts it again with its data.
    pub async fn restart(&mut self) {
        self.kill().await;
        self.start_again().await;
    }

    /// Shuts the server down, and starts it again.
    pub async fn restart_cleanly(&mut self) {
        self.shut_down().await;
        self.start_again().await;
    }

    /// Ends the server with its connections, when its standbys have received everything.
    pub async fn shut_down(&mut self) {
        let ended = within(TIME_LIMIT, self.processes.shut_down()).await;
        assert!(ended.success(), "the server did not shut down: {ended}");
    }

    async fn start_again(&mut self) {
        let started = launch::processes(&self.command, self.data()).await;
        self.processes =
            started.unwrap_or_else(|log| panic!("the server did not start again:\n{log}"));
    }

    /// A copy that follows this server and can only be read, until it is [promoted](Self::promote).
    pub async fn standby(&self) -> Self {
        self.standby_at(free_port()).await
    }

    pub(crate) async fn standby_at(&self, port: u16) -> Self {
        self.builder.start_standby(self, port).await
    }

    /// Lets a standby take the place of the server that it followed, which is not told.
    pub async fn promote(&self) {
        // A call that waits for the end keeps its snapshot, for which the standby may put off what it has received.
        let promoted = self.cmd("SELECT pg_promote(wait => false)").await;
        assert_eq!(promoted, ["t"], "the standby was not promoted");
        let leads = async || self.cmd("SELECT pg_is_in_recovery()").await == ["f"];
        eventually(TIME_LIMIT, leads).await;
    }

    /// Returns when a standby has what this server has written.
    pub async fn is_copied_to(&self, standby: &Self) {
        let written = self.cmd("SELECT pg_current_wal_lsn()").await.remove(0);
        let seen = format!("SELECT pg_last_wal_replay_lsn() >= '{written}'");
        eventually(TIME_LIMIT, async || standby.cmd(&seen).await == ["t"]).await;
    }

    /// Closes the connections of everybody else, as an administrator would; how many there were.
    pub async fn terminate_all(&self) -> usize {
        let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        self.cmd(others).await.len()
    }

    /// Kills the process of one connection, whereupon the server ends all others and recovers.
    pub async fn kill_backend(&self, pid: u32) {
        self.processes.kill_child(pid);
        eventually(TIME_LIMIT, async || self.is_up().await).await;
    }

    /// Stops the process of one connection, which has to be [resumed](Self::resume_backend).
    pub fn stop_backend(&self, pid: u32) {
        self.processes.stop_child(pid);
    }

    /// Lets the process of one connection go on.
    pub fn resume_backend(&self, pid: u32) {
        self.processes.resume_child(pid);
    }

    /// Whether the server answers.
    pub async fn is_up(&self) -> bool {
        let Ok(mut peer) = PostgresPeer::try_connect(self.addr(), "postgres", "postgres").await
        else {
            return false;
        };
        peer.try_rows("SELECT 1").await.is_ok()
    }

    /// The processes of the connections of managers.
    pub async fn backends(&self) -> Vec<u32> {
        self.backends_like("lock-runtime:%").await
    }

    /// Those of the managers of one process.
    pub async fn backends_of(&self, process: u32) -> Vec<u32> {
        self.backends_like(&format!("lock-runtime:{process}@%"))
            .await
    }

    async fn backends_like(&self, pattern: &str) -> Vec<u32> {
        let sql = format!(
            "SELECT pid FROM pg_stat_activity WHERE application_name LIKE '{pattern}' ORDER BY pid"
        );
        let pids = self.cmd(&sql).await.into_iter();
        pids.map(|it| it.parse().expect("a number")).collect()
    }

    /// What is there of locks that somebody has or waits for, in this schema.
    pub async fn traces(&self, schema: &str) -> Vec<String> {
        let mut peer = self.peer().await;
        let installed = format!("SELECT to_regclass('{schema}.lock')");
        if peer.rows(&installed).await == [[None]] {
            return Vec::new();
        }
        peer.column(&format!(
            "SELECT 'lock ' || name FROM {schema}.lock WHERE expires > clock_timestamp() \
             UNION ALL SELECT 'waiter ' || name FROM {schema}.waiter \
             UNION ALL SELECT 'sharer ' || name FROM {schema}.sharer WHERE expires > clock_timestamp()"
        ))
        .await
    }
}

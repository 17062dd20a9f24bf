//! Members of etcd of the test's own, where the binary is at hand.

mod gateway;
mod launch;
mod look;

pub use gateway::Gateway;
pub(crate) use look::Change;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::{
    Authority, TIME_LIMIT, eventually,
    fixtures::LOOK_EVERY,
    namespace::Namespace,
    process::Process,
    stores::{Home, Traces},
    within,
};

/// Longer than a leader tries to let another member lead.
const TRANSFER: Duration = Duration::from_secs(3);

/// A running member on loopback, with a directory of its own; dropping it ends it.
#[derive(Debug)]
pub struct EtcdServer {
    // The process is dropped, and so ended, before its directory.
    process: Process,
    /// The program and its arguments.
    command: Vec<String>,
    host: Ipv4Addr,
    port: u16,
    /// Where it says whether it is well.
    health: u16,
    directory: TempDir,
}

impl EtcdServer {
    /// A cluster of one member; `None`, with a notice, where it cannot be had.
    pub async fn start(test: &str) -> Option<Self> {
        let mut cluster = EtcdCluster::start(test, 1).await?;
        cluster.members.pop()
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        (self.host, self.port).into()
    }

    /// What a manager is configured with.
    pub fn url(&self) -> String {
        format!("etcd://{}", self.addr())
    }

    /// Stops the member with its connections open, as if its machine hung.
    pub fn stop(&self) {
        self.process.stop();
    }

    /// Lets a stopped member go on.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Ends it at once.
    pub async fn kill(&mut self) {
        self.process.kill().await;
    }

    /// Starts it again with what it has on disk.
    pub async fn restart(&mut self) {
        self.kill().await;
        self.start_again().await;
    }

    /// Starts it with what it has on disk, once it has been ended.
    pub(crate) async fn start_again(&mut self) {
        self.process = launch::process(&self.command).await;
        self.ready().await;
    }

    /// Ends it, and keeps a copy of its data as it is then, to which it may go [`back`](Self::back).
    pub async fn backup(&mut self) -> TempDir {
        self.kill().await;
        let backup = tempfile::tempdir().expect("a directory for the backup");
        copy(&self.directory.path().join("data"), backup.path());
        self.restart().await;
        backup
    }

    /// Starts it with the data of a backup, and none of what came later.
    pub async fn back(&mut self, backup: &TempDir) {
        self.kill().await;
        let data = self.directory.path().join("data");
        std::fs::remove_dir_all(&data).expect("its data");
        copy(backup.path(), &data);
        self.restart().await;
    }

    pub(crate) async fn ready(&self) {
        eventually(TIME_LIMIT, async || self.is_healthy().await).await;
    }
}

/// Copies a directory and what is in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).expect("a file");
        }
    }
}

/// The members of one cluster.
#[derive(Debug)]
pub struct EtcdCluster {
    /// In any order.
    pub members: Vec<EtcdServer>,
    /// Where the first member stands, if it stands apart from the others.
    network: Option<Namespace>,
}

impl EtcdCluster {
    /// A cluster of so many members; `None`, with a notice, where it cannot be had.
    pub async fn start(test: &str, members: usize) -> Option<Self> {
        if !launch::is_installed(test) {
            return None;
        }
        Some(launch::cluster(members, None, None, &[]).await)
    }

    /// A cluster whose first member stands in a network of its own, so that it can be cut off from the others and not
    /// from clients; `None`, with a notice, where there are no network namespaces either.
    pub async fn start_apart(test: &str, members: usize) -> Option<Self> {
        if !launch::is_installed(test) {
            return None;
        }
        let network = launch::network(test)?;
        Some(launch::cluster(members, None, Some(network), &[]).await)
    }

    /// A cluster whose members have these options more, such as `("max-concurrent-streams", "8")`.
    pub async fn start_limited(
        test: &str,
        members: usize,
        limits: &[(&str, &str)],
    ) -> Option<Self> {
        if !launch::is_installed(test) {
            return None;
        }
        Some(launch::cluster(members, None, None, limits).await)
    }

    /// A cluster of one member that encrypts, and whose clients show a certificate of the same authority.
    pub async fn start_encrypted(test: &str, authority: &Authority) -> Option<Self> {
        if !launch::is_installed(test) {
            return None;
        }
        Some(launch::cluster(1, Some(authority), None, &[]).await)
    }

    /// A URL that names all members.
    pub fn url(&self) -> String {
        let addresses = self.members.iter().map(|it| it.addr().to_string());
        format!("etcd://{}", addresses.collect::<Vec<_>>().join(","))
    }

    /// The index of the leader among the members, once they agree about one.
    pub async fn leader(&self) -> usize {
        let leader = async {
            loop {
                if let Some(leader) = self.try_leader().await {
                    return leader;
                }
                sleep(LOOK_EVERY).await;
            }
        };
        within(TIME_LIMIT, leader).await
    }

    /// Lets a member lead.
    pub async fn lead(&self, member: usize) {
        let leading = async || {
            let leader = self.leader().await;
            if leader == member {
                return true;
            }
            let Some((id, _)) = self.members[member].id_and_leader().await else {
                return false;
            };
            let body = format!(r#"{{"targetID":"{id}"}}"#);
            let asked = &self.members[leader];
            let moved = asked.ask("maintenance/transfer-leadership", &body);
            // A leader that has stopped trying, as it does after an election timeout, answers no more.
            if timeout(TRANSFER, moved).await.is_err()
                && let Some(network) = &self.network
            {
                // What was sent while the member was cut off may hold up all that follows.
                let _ = network.cut();
            }
            false
        };
        // A member that was cut off has to catch up first, on a busy machine.
        eventually(3 * TIME_LIMIT, leading).await;
    }

    /// Loses all that goes between the first member and the others, which are not notified.
    pub fn cut_off(&self) {
        let cut = self.network().stop(true, true);
        cut.expect("the network can be changed");
    }

    /// Loses nothing any more.
    pub fn join(&self) {
        let joined = self.network().pass();
        joined.expect("the network can be changed");
        // Else the members send what was lost again when the system sees fit, seconds later. Where connections cannot
        // be reset, they do.
        let _ = self.network().cut();
    }

    fn network(&self) -> &Namespace {
        let network = self.network.as_ref();
        network.expect("the first member stands apart")
    }

    async fn try_leader(&self) -> Option<usize> {
        for (at, member) in self.members.iter().enumerate() {
            if let Some((id, leader)) = member.id_and_leader().await
                && id == leader
            {
                return Some(at);
            }
        }
        None
    }
}

impl Home for EtcdServer {
    fn url(&self) -> String {
        self.url()
    }

    fn traces(&self) -> Traces<'_> {
        Box::pin(async {
            // The keys that show that leases live belong to managers, and not to locks.
            let keys = self.keys("lock/").await.into_iter();
            keys.filter(|key| !key.starts_with("lock//")).collect()
        })
    }
}

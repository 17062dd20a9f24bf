//! ZooKeeper servers of the test's own, where Java and the server's jars are at hand.

mod ensemble;
mod launch;
mod log;
mod peer;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Weak},
};

use tempfile::TempDir;
use tokio::sync::Mutex;

pub(crate) use self::log::Change;
pub use self::{
    ensemble::{ZooKeeperEnsemble, ZooKeeperTraffic},
    log::History as ZooKeeperHistory,
    peer::ZooKeeperPeer,
};
use crate::{
    Authority,
    process::Process,
    stores::{Home, Traces},
    unique,
};

/// A running server on loopback, with a directory of its own; dropping it ends it.
#[derive(Debug)]
pub struct ZooKeeperServer {
    // The process is dropped, and so ended, before its directory.
    process: Process,
    port: u16,
    /// Nobody listens there unless it encrypts.
    secure_port: u16,
    directory: TempDir,
}

impl ZooKeeperServer {
    /// One server that stands alone; `None`, with a notice, where it cannot be had.
    pub async fn start(test: &str) -> Option<Self> {
        if !launch::is_installed(test) {
            return None;
        }
        Some(launch::alone(None).await)
    }

    /// The same with a port that encrypts, for clients that show a certificate of the same authority.
    pub async fn start_encrypted(test: &str, authority: &Authority) -> Option<Self> {
        if !launch::is_installed(test) {
            return None;
        }
        Some(launch::alone(Some(authority)).await)
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The address of its port that encrypts.
    pub fn secure_addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.secure_port).into()
    }

    /// The URL of locks below a node.
    pub fn url(&self, chroot: &str) -> String {
        format!("zookeeper://{}/{chroot}", self.addr())
    }

    /// Looks at its nodes.
    pub async fn peer(&self) -> ZooKeeperPeer {
        ZooKeeperPeer::connect(self.addr()).await
    }

    /// Stops the process as if its machine were suspended.
    pub fn stop(&self) {
        self.process.stop();
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Ends it at once.
    pub async fn kill(&mut self) {
        self.process.kill().await;
    }

    /// Starts it again as if it were restored from a backup in which there was nothing.
    pub async fn restart_without_data(&mut self) {
        self.kill().await;
        let data = self.directory.path().join("data/version-2");
        std::fs::remove_dir_all(data).expect("its data");
        self.restart().await;
    }

    /// Starts it again with what it has on disk.
    pub async fn restart(&mut self) {
        self.kill().await;
        self.process = launch::process(&self.directory).await;
        launch::ready(self.addr()).await;
    }
}

/// A node of a test's own on a server that tests of one program share, since it takes long to start.
#[derive(Debug)]
pub struct ZooKeeperHome {
    server: Arc<ZooKeeperServer>,
    chroot: String,
}

impl ZooKeeperHome {
    /// One that is empty; `None`, with a notice, where there is no server.
    pub async fn start() -> Option<Self> {
        static SHARED: Mutex<Weak<ZooKeeperServer>> = Mutex::const_new(Weak::new());
        let mut shared = SHARED.lock().await;
        let server = match shared.upgrade() {
            Some(server) => server,
            None => Arc::new(ZooKeeperServer::start("what runs on every store").await?),
        };
        *shared = Arc::downgrade(&server);
        let chroot = unique("store");
        Some(Self { server, chroot })
    }
}

impl Home for ZooKeeperHome {
    /// Its session outlives each test, as the leases of [`LONG`](crate::LONG) do on other stores.
    fn url(&self) -> String {
        format!("{}?ttl=60s", self.server.url(&self.chroot))
    }

    fn traces(&self) -> Traces<'_> {
        Box::pin(async {
            let mut peer = self.server.peer().await;
            let locks = format!("/{}/lock", self.chroot);
            let mut traces = Vec::new();
            for lock in peer.children(&locks).await {
                let queue = peer.children(&format!("{locks}/{lock}")).await;
                traces.extend(queue.iter().map(|entry| format!("{lock}/{entry}")));
            }
            traces
        })
    }
}

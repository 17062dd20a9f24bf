//! The crate `zookeeper-client`: its recipe for locks, with nodes that are named as Curator names them.

use zookeeper_client::{Acls, Client, CreateMode, LockOptions, LockPrefix};

use super::locks::{Locks, TTL};

/// A client whose tasks share a session.
#[derive(Clone, Debug)]
pub(crate) struct ZooKeeperClient(Client);

impl Locks for ZooKeeperClient {
    /// The path of its node.
    type Guard = String;

    async fn connect(url: &str) -> Self {
        let hosts = url.trim_start_matches("zookeeper://");
        let connector = Client::connector().with_session_timeout(TTL);
        Self(connector.connect(hosts).await.expect("a server"))
    }

    async fn take(&self, key: &str) -> String {
        let directory = format!("/peers/{key}");
        let prefix = LockPrefix::new_curator(&directory, "lock-").expect("a path");
        let parents = CreateMode::Container.with_acls(Acls::anyone_all());
        let options = LockOptions::new(Acls::anyone_all()).with_ancestor_options(parents);
        let options = options.expect("parents that stay");
        let lock = self.0.lock(prefix, b"", options).await.expect("the lock");
        let node = lock.lock_path().to_owned();
        // Dropping it would delete the node in the background, where nobody could wait for the answer.
        std::mem::forget(lock);
        node
    }

    async fn free(&self, node: String) {
        self.0.delete(&node, None).await.expect("the release");
    }
}

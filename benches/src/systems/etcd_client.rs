//! The crate `etcd-client`: asks for etcd's own locks, for which a member waits in the queue.

use etcd_client::{Client, LeaseClient, LockOptions};
use tokio::sync::OnceCell;
use tokio::time::sleep;

use super::locks::{Locks, TTL};

/// A client for one task, since a lock belongs to a lease: another task with the same one would be let in.
pub(crate) struct EtcdClient {
    client: Client,
    lease: OnceCell<i64>,
}

impl Clone for EtcdClient {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            lease: OnceCell::new(),
        }
    }
}

impl Locks for EtcdClient {
    /// The key of its entry.
    type Guard = Vec<u8>;

    async fn connect(url: &str) -> Self {
        let hosts = url.trim_start_matches("etcd://");
        let hosts: Vec<_> = hosts.split(',').collect();
        Self {
            client: Client::connect(hosts, None).await.expect("a server"),
            lease: OnceCell::new(),
        }
    }

    async fn take(&self, key: &str) -> Vec<u8> {
        let lease = || keep_lease(self.client.lease_client());
        let lease = *self.lease.get_or_init(lease).await;
        let options = LockOptions::new().with_lease(lease);
        let lock = self.client.lock_client().lock(key, Some(options)).await;
        lock.expect("the lock").key().to_vec()
    }

    async fn free(&self, entry: Vec<u8>) {
        let released = self.client.lock_client().unlock(entry).await;
        released.expect("the release");
    }
}

/// A lease that is kept alive as long as the process runs.
async fn keep_lease(mut leases: LeaseClient) -> i64 {
    let lease = leases.grant(TTL.as_secs().cast_signed(), None).await;
    let lease = lease.expect("a lease").id();
    let (mut keeper, mut answers) = leases.keep_alive(lease).await.expect("a stream");
    tokio::spawn(async move {
        while keeper.keep_alive().await.is_ok() && answers.message().await.is_ok() {
            sleep(TTL / 3).await;
        }
    });
    lease
}

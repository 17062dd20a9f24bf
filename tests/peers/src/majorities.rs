//! The recipes of stores of which a majority agrees, by their Rust clients.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use etcd_client::{Client, LeaseKeepAliveStream, LeaseKeeper, LockOptions};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use zookeeper_client as zookeeper;

use crate::library::Library;

/// `etcd-client`: etcd's own locks, each under a lease that the caller keeps alive.
#[derive(Clone)]
pub(crate) struct EtcdClient {
    client: Client,
    ttl: Duration,
}

/// An entry in etcd's queue.
pub(crate) struct Entry {
    key: Vec<u8>,
    lease: Lease,
}

/// A lease and the task that keeps it alive.
struct Lease {
    id: i64,
    lost: Arc<AtomicBool>,
    keeping: JoinHandle<()>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.keeping.abort();
    }
}

impl EtcdClient {
    async fn lease(&self) -> Option<Lease> {
        let mut leases = self.client.lease_client();
        let seconds = self.ttl.as_secs().max(1).cast_signed();
        let id = leases.grant(seconds, None).await.ok()?.id();
        let (keeper, answers) = leases.keep_alive(id).await.ok()?;
        let lost = Arc::new(AtomicBool::new(false));
        let (ttl, ends) = (self.ttl, Arc::clone(&lost));
        let keeping = tokio::spawn(async move {
            keep(keeper, answers, ttl).await;
            ends.store(true, Ordering::Relaxed);
        });
        Some(Lease { id, lost, keeping })
    }
}

/// Until the lease has ended, or may have.
async fn keep(mut keeper: LeaseKeeper, mut answers: LeaseKeepAliveStream, ttl: Duration) {
    loop {
        sleep(ttl / 3).await;
        let answer = async {
            keeper.keep_alive().await.ok()?;
            answers.message().await.ok()?
        };
        match timeout(ttl / 3, answer).await {
            Ok(Some(answer)) if answer.ttl() > 0 => {}
            _ => return,
        }
    }
}

impl Library for EtcdClient {
    type Lock = Entry;

    async fn connect(url: &str, ttl: Duration) -> Option<Self> {
        let hosts: Vec<_> = url.trim_start_matches("etcd://").split(',').collect();
        let client = Client::connect(hosts, None).await.ok()?;
        Some(Self { client, ttl })
    }

    async fn take(&self, key: &str) -> Option<Entry> {
        let lease = self.lease().await?;
        let options = LockOptions::new().with_lease(lease.id);
        let mut locks = self.client.lock_client();
        let lock = locks.lock(key, Some(options)).await.ok()?;
        let key = lock.key().to_vec();
        Some(Entry { key, lease })
    }

    async fn goes_on(&self, entry: &mut Entry) -> bool {
        !entry.lease.lost.load(Ordering::Relaxed)
    }

    async fn free(&self, entry: Entry) -> bool {
        let held = !entry.lease.lost.load(Ordering::Relaxed);
        let unlocked = self.client.lock_client().unlock(entry.key).await;
        let revoked = self.client.lease_client().revoke(entry.lease.id).await;
        held && unlocked.is_ok() && revoked.is_ok()
    }
}

/// `zookeeper-client`: its recipe for locks, with nodes that are named as Curator names them. All tasks share a session.
#[derive(Clone)]
pub(crate) struct ZooKeeperClient {
    hosts: String,
    ttl: Duration,
    client: Arc<Mutex<zookeeper::Client>>,
}

async fn session(hosts: &str, ttl: Duration) -> Option<zookeeper::Client> {
    let connector = zookeeper::Client::connector().with_session_timeout(ttl);
    connector.connect(hosts).await.ok()
}

impl ZooKeeperClient {
    fn client(&self) -> zookeeper::Client {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        client.clone()
    }
}

impl Library for ZooKeeperClient {
    type Lock = zookeeper::OwnedLockClient;

    async fn connect(url: &str, ttl: Duration) -> Option<Self> {
        let hosts = url.trim_start_matches("zookeeper://").to_owned();
        let client = Arc::new(Mutex::new(session(&hosts, ttl).await?));
        Some(Self { hosts, ttl, client })
    }

    async fn take(&self, key: &str) -> Option<Self::Lock> {
        let mut client = self.client();
        if client.state().is_terminated() {
            client = session(&self.hosts, self.ttl).await?;
            *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client.clone();
        }
        let directory = format!("/peers/{key}");
        let prefix = zookeeper::LockPrefix::new_curator(&directory, "lock-").ok()?;
        let everybody = zookeeper::Acls::anyone_all;
        let parents = zookeeper::CreateMode::Container.with_acls(everybody());
        let options = zookeeper::LockOptions::new(everybody());
        let options = options.with_ancestor_options(parents).ok()?;
        let lock = client.lock(prefix, b"", options).await.ok()?;
        Some(lock.into_owned())
    }

    async fn goes_on(&self, lock: &mut Self::Lock) -> bool {
        !lock.client().state().is_terminated()
    }

    /// Its end deletes the node in the background.
    async fn free(&self, lock: Self::Lock) -> bool {
        !lock.client().state().is_terminated()
    }
}

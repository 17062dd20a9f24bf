//! Backups that take the place of newer data: what they have not heard of is forgotten.
//!
//! Section: postgres.md#backups

use std::time::Duration;

use lock_runtime::{FencingToken, LockConfig, LockGuard, LockManager};
use tests::{Backup, LONG, PostgresServer, Proxy, TIME_LIMIT, connect, release, take, within};

use crate::{is_quarantined, server};

/// The longest lease where locks are quarantined.
const LONGEST: Duration = Duration::from_secs(2);

/// A lock that a server has forgotten, since a backup of an earlier time is in its place.
struct Scene {
    server: PostgresServer,
    _proxy: Proxy,
    /// Its manager does not reach the server any more.
    forgotten: LockGuard,
    _locks: LockManager,
}

impl Scene {
    async fn new(
        ttl: Duration,
        saves: impl AsyncFnOnce(&mut PostgresServer) -> Backup,
    ) -> Option<Self> {
        let mut server = server().await?;
        let mut proxy = Proxy::start(server.addr());
        let locks = connect(config(&server.url_at(proxy.addr()))).await;
        release(take(&locks, "key", ttl).await).await;
        let backup = saves(&mut server).await;
        release(take(&locks, "key", ttl).await).await;
        let forgotten = take(&locks, "key", ttl).await;
        proxy.refuse().await;
        proxy.cut().await;
        server.restore(&backup).await;
        Some(Self {
            server,
            _proxy: proxy,
            forgotten,
            _locks: locks,
        })
    }

    /// Nothing is granted until the lease has ended that is forgotten.
    async fn demands_quarantine(self) {
        let others = connect(config(&self.server.url()).quarantine(LONGEST)).await;
        is_quarantined(&others).await;
        let next = others.lock("key").wait_forever().acquire();
        let next = within(TIME_LIMIT, next).await.unwrap();
        assert!(!self.forgotten.is_held(), "two holders");
        assert!(next.fencing_token() > self.forgotten.fencing_token());
        release(next).await;
    }

    /// The lock is granted at once; the tokens of both holders.
    async fn grants_twice(self) -> [FencingToken; 2] {
        let others = connect(config(&self.server.url())).await;
        let next = others.lock("key").wait_forever().acquire();
        let next = within(TIME_LIMIT, next).await.unwrap();
        assert!(self.forgotten.is_held() && next.is_held());
        [self.forgotten.fencing_token(), next.fencing_token()]
    }
}

fn config(url: &str) -> LockConfig {
    let config = LockConfig::new(url).unwrap().ttl(LONGEST);
    config
        .unavailable_wait_forever()
        .connect_timeout(TIME_LIMIT)
}

#[tokio::test]
async fn a_restored_backup_grants_nothing_until_forgotten_leases_have_ended() {
    let scene = Scene::new(LONGEST, async |server| server.back_up().await).await;
    if let Some(scene) = scene {
        scene.demands_quarantine().await;
    }
}

/// The larger tokens go to those who come later, without a quarantine too.
#[tokio::test]
async fn fencing_tokens_go_on_over_a_restored_backup() {
    let scene = Scene::new(LONG, async |server| server.back_up().await).await;
    if let Some(scene) = scene {
        let [forgotten, next] = scene.grants_twice().await;
        assert!(next > forgotten);
    }
}

/// Nothing in such files shows that they are old.
#[tokio::test]
async fn files_of_a_stopped_server_need_a_quarantine_by_hand() {
    let scene = Scene::new(LONGEST, async |server| server.copy_files().await).await;
    if let Some(scene) = scene {
        scene.server.cmd("TRUNCATE lock_runtime.run").await;
        scene.demands_quarantine().await;
    }
    let scene = Scene::new(LONG, async |server| server.copy_files().await).await;
    if let Some(scene) = scene {
        let quarantine = "SELECT lock_runtime.quarantined(2000)";
        assert_eq!(scene.server.cmd(quarantine).await, ["0"]);
    }
}

//! A master is replaced right after it granted locks: how many of them does the next master grant again?

use std::{sync::Arc, time::Duration};

use lock_runtime::{LockConfig, LockGuard, LockManager};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    connect,
    fixtures::unique,
    torture::{Blow, Protection, Servers, Site},
};

/// How many locks are taken at once.
const LOCKS: usize = 24;
/// Longer than a failover on demand takes.
const LEASE: Duration = Duration::from_secs(3);
/// How long the first manager may take to be granted what it asks for.
const SOON: Duration = Duration::from_millis(200);
/// How long the second one waits: past the end of a lease and of the quarantine, or, without one, not long.
const PAST_QUARANTINE: Duration = Duration::from_secs(6);
const AT_ONCE: Duration = Duration::from_millis(500);

/// What so many failovers have shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Replaced {
    /// How many failovers there were.
    pub failovers: usize,
    /// How many locks were granted around them.
    pub granted: usize,
    /// How many were granted to another holder afterwards.
    pub again: usize,
    /// How many of these while the first holder was sure of its own.
    pub doubles: usize,
    /// In how many of the failovers that happened.
    pub harmful: usize,
}

/// Replaces masters of such servers, one after the other: killed, stopped and cut off.
pub async fn replace_masters(
    servers: Servers,
    protection: Protection,
    failovers: usize,
) -> Replaced {
    let mut site = Site::start(servers, protection.options()).await;
    let query = protection.query(servers, LEASE);
    let limit = match protection {
        Protection::Quarantine => PAST_QUARANTINE,
        Protection::None | Protection::Replicas => AT_ONCE,
    };
    let first = manager(site.url() + &query).await;
    let mut all = Replaced::default();
    for number in 0..failovers {
        // The last quarantine has ended, if there was one.
        let before = acquire(first.clone(), PAST_QUARANTINE).await;
        assert_eq!(before.len(), LOCKS, "all is well");
        drop(before);
        let blow = [Blow::Kill, Blow::Stop, Blow::CutOff][number % 3];
        let old = site.any().await;
        let mut acquiring = None;
        if blow != Blow::CutOff {
            acquiring = Some(tokio::spawn(acquire(first.clone(), SOON)));
            // Some are granted by then, and some are on their way.
            sleep(Duration::from_millis(fastrand::u64(1..30))).await;
        }
        site.strike(blow, old).await;
        // What a master grants that is cut off does not reach its replicas.
        let acquiring = acquiring.unwrap_or_else(|| tokio::spawn(acquire(first.clone(), SOON)));
        let guards = Arc::new(acquiring.await.expect("no panic"));
        let new = site.replace(old).await;
        let second = manager(site.url_through(new) + &query).await;
        all.granted += guards.len();
        let before = acquire_again(&second, &guards, limit).await;
        site.mend(blow, old).await;
        // Only now a new master has replicas to confirm what it grants.
        let after = acquire_again(&second, &guards, AT_ONCE).await;
        all.failovers += 1;
        all.again += before.0 + after.0;
        all.doubles += before.1 + after.1;
        all.harmful += usize::from(before.1 + after.1 > 0);
    }
    all
}

/// One that waits for a store that is away, also at first, as long as its callers like.
async fn manager(url: String) -> LockManager {
    let config = LockConfig::new(url).expect("a URL");
    connect(config.unavailable_wait_forever().lazy()).await
}

/// Takes locks that nobody has had, as far as they are granted within such a time.
async fn acquire(locks: LockManager, limit: Duration) -> Vec<LockGuard> {
    let mut tasks = JoinSet::new();
    for _ in 0..LOCKS {
        let acquire = locks.lock(unique("failover")).ttl(LEASE).acquire();
        tasks.spawn(timeout(limit, acquire));
    }
    let outcomes = tasks.join_all().await;
    outcomes
        .into_iter()
        .filter_map(|it| it.ok()?.ok())
        .collect()
}

/// Takes the same locks elsewhere: how many are granted, and how many of these while the guards are sure of them.
async fn acquire_again(
    locks: &LockManager,
    guards: &Arc<Vec<LockGuard>>,
    limit: Duration,
) -> (usize, usize) {
    let mut tasks = JoinSet::new();
    for number in 0..guards.len() {
        let guards = Arc::clone(guards);
        let request = locks.lock(guards[number].key().clone()).ttl(LEASE);
        let acquire = timeout(limit, request.acquire());
        tasks.spawn(async move {
            let _again = acquire.await.ok()?.ok()?;
            Some(guards[number].is_held())
        });
    }
    let granted: Vec<bool> = tasks.join_all().await.into_iter().flatten().collect();
    let doubles = granted.iter().filter(|held| **held).count();
    (granted.len(), doubles)
}

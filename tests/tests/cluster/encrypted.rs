//! A cluster that encrypts.
//!
//! Section: guarantees.md#when-locks-move-in-a-cluster

use lock_runtime::{LockConfig, LockManager, Tls};
use tests::{
    Authority, ClusterFleet, LONG, TIME_LIMIT, connect, granted, queue, release, take, within,
};

use crate::{TTL, renewed};

#[tokio::test]
async fn nodes_that_encrypt_are_found_and_followed() {
    let authority = Authority::new();
    let trusted = Tls::new().ca_pem(authority.pem());
    let fleet = ClusterFleet::builder().tls(authority).start().await;
    // That of the first node leads to the others, where nodes announce only where they encrypt.
    let config = LockConfig::new(fleet.tls_url())
        .expect("a URL")
        .tls(trusted);
    let locks = connect(config).await;
    for node in 0..3 {
        let key = fleet.key_at(node).await;
        let guard = take(&locks, &key, LONG).await;
        assert!(fleet.nodes()[node].owner(&key).await.is_some());
        release(guard).await;
    }

    let first = fleet.master_of("key").await;
    let holder = take(&locks, "key", TTL).await;
    let waiter = queue(&fleet.nodes()[first], &locks, "key", LONG, 1).await;
    fleet.hand_over(first).await;
    renewed(&holder).await;
    release(holder).await;
    release(granted(TIME_LIMIT, waiter).await).await;

    let stranger = LockConfig::new(fleet.tls_url()).expect("a URL");
    let refused = within(TIME_LIMIT, LockManager::connect(stranger)).await;
    let text = refused
        .map(drop)
        .expect_err("an unknown authority")
        .to_string();
    assert!(text.starts_with("invalid tls: "), "{text}");
}

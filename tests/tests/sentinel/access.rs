//! Who may ask the sentinels, and who the master.
//!
//! Section: guarantees.md#when-a-replica-takes-over

use std::time::Duration;

use lock_runtime::{LockConfig, LockError, LockManager};
use tests::{LONG, SentinelFleet, TIME_LIMIT, connect, release, take, timed};

use crate::{left, watchful};

/// What the documents say that a user of the sentinels needs.
const SENTINEL_RIGHTS: &str = "resetchannels &+switch-master -@all +subscribe \
     +sentinel|master +sentinel|get-master-addr-by-name";
/// A user of the master, who may ask for its role.
const RIGHTS: &str = "~lock:* resetchannels &lock:grant:* &lock:all -@all +subscribe +publish +eval +evalsha +get \
     +set +del +exists +incr +incrby +pexpire +pttl +time +zadd +zpopmin +zrem +zscore +zrange +zcard +zcount \
     +zremrangebyscore +role";

/// Soon enough to say that nothing was waited for.
const AT_ONCE: Duration = Duration::from_secs(3);

/// A fleet whose sentinels and servers know a user with these rights and the password `secret`.
async fn fleet_with_users(rights: &str) -> SentinelFleet {
    let fleet = watchful().await;
    for (servers, user, rights) in [
        (fleet.nodes(), "shop", rights),
        (fleet.sentinels(), "eye", SENTINEL_RIGHTS),
    ] {
        for server in servers {
            let words = ["ACL", "SETUSER", user, "on", ">secret"];
            let rights: Vec<_> = rights.split_whitespace().collect();
            server.cmd(&[&words, &rights[..]].concat()).await;
        }
    }
    fleet
}

fn url(fleet: &SentinelFleet, password: &str, sentinel_password: &str) -> String {
    let login = format!("//shop:{password}@");
    let url = fleet.url().replacen("//", &login, 1);
    format!("{url}?sentinel_user=eye&sentinel_password={sentinel_password}")
}

/// Refused at once; with what words.
async fn refused(url: String) -> String {
    let config = LockConfig::new(url)
        .expect("a URL")
        .connect_timeout(TIME_LIMIT);
    let (took, outcome) = timed(LockManager::connect(config)).await;
    let error = outcome.expect_err("no access");
    let text = error.to_string();
    assert!(matches!(error, LockError::Unavailable { .. }), "{text}");
    assert!(took < AT_ONCE, "{took:?}: {text}");
    assert!(!text.contains("hunter2"), "{text}");
    text
}

#[tokio::test]
async fn the_documented_rights_are_enough() {
    let fleet = fleet_with_users(RIGHTS).await;
    let locks = connect(url(&fleet, "secret", "secret")).await;
    release(take(&locks, "key", LONG).await).await;
    // Its messages arrive, too.
    let first = fleet.master().await;
    let mut switches = fleet.switches().await;
    fleet.cut_off(first).await;
    switches.next().await;
    left(&fleet.nodes()[first]).await;
}

#[tokio::test]
async fn a_wrong_password_says_whose_it_is() {
    let fleet = fleet_with_users(RIGHTS).await;
    let text = refused(url(&fleet, "secret", "hunter2")).await;
    assert!(text.contains("no sentinel names a master"), "{text}");
    assert!(
        text.contains("WRONGPASS") || text.contains("assword"),
        "{text}"
    );
    let text = refused(url(&fleet, "hunter2", "secret")).await;
    assert!(!text.contains("no sentinel names"), "{text}");
    assert!(
        text.contains("WRONGPASS") || text.contains("assword"),
        "{text}"
    );
}

#[tokio::test]
async fn a_sentinel_that_asks_for_a_password_which_is_not_given() {
    let fleet = fleet_with_users(RIGHTS).await;
    for sentinel in fleet.sentinels() {
        let words = ["ACL", "SETUSER", "default", "-@all", "+auth", "+hello"];
        sentinel.cmd(&words).await;
    }
    let text = refused(fleet.url()).await;
    assert!(
        text.contains("no sentinel names a master") && text.contains("permission"),
        "{text}"
    );
}

#[tokio::test]
async fn the_right_to_ask_for_the_role_is_needed() {
    let fleet = fleet_with_users(&RIGHTS.replace("+role", "")).await;
    let text = refused(url(&fleet, "secret", "secret")).await;
    assert!(text.contains("'role'"), "{text}");
}

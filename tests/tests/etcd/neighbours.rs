//! What else stands in the same etcd.

use std::path::Path;

use tests::{EtcdServer, LONG, TIME_LIMIT, connect, eventually, release, take};
use tokio::process::{Child, Command};

/// Takes a lock of `etcdctl` and keeps it; `None` where there is no `etcdctl`.
fn etcdctl_lock(server: &EtcdServer, name: &str) -> Option<Child> {
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/etcd/usr/bin/etcdctl");
    let binary = if fetched.exists() {
        fetched
    } else {
        "etcdctl".into()
    };
    Command::new(binary)
        .env("ETCDCTL_API", "3")
        .args(["--endpoints", &server.addr().to_string(), "lock", name])
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .ok()
}

// Section: etcd.md#what-etcdctl-shows
#[tokio::test]
async fn the_locks_of_etcdctl_and_ours_do_not_interfere() {
    let Some(server) = EtcdServer::start("the locks of etcdctl").await else {
        return;
    };
    let locks = connect(&*server.url()).await;
    // The same name, and one whose keys begin as those of our queue.
    for (name, prefix) in [("stock:7", "stock:7/"), ("lock/stock:7", "lock/stock:7/")] {
        let guard = take(&locks, "other", LONG).await;
        let Some(_theirs) = etcdctl_lock(&server, name) else {
            return;
        };
        eventually(TIME_LIMIT, async || !server.keys(prefix).await.is_empty()).await;
        let ours = take(&locks, "stock:7", LONG).await;
        assert_eq!(locks.status("stock:7").await.unwrap().waiting, 0);
        assert_eq!(locks.list("*").await.unwrap().len(), 2);
        release(ours).await;
        release(guard).await;
    }
}

//! `graph`, and what `doctor` says of holders that wait for each other.

use lock_runtime::{LockError, LockManager};
use tests::{LONG, RedisServer, TIME_LIMIT, connect, eventually, within};
use tokio::{sync::watch, task::JoinHandle};

use crate::support::{lockctl, ran};

/// Takes the first lock, and in its body the second one once all are there.
async fn nest(
    locks: &LockManager,
    [outer, inner]: [&str; 2],
    all: &watch::Sender<usize>,
) -> JoinHandle<Result<(), LockError>> {
    let outer = locks.lock(outer).ttl(LONG).function("shop::move");
    let inner = locks.lock(inner).ttl(LONG).wait_forever();
    let (all, before) = (all.clone(), *all.borrow());
    let mut there = all.subscribe();
    let task = tokio::spawn(async move {
        let body = outer.run(async |_| {
            all.send_modify(|count| *count += 1);
            all.subscribe().wait_for(|count| *count >= 2).await.unwrap();
            inner.acquire().await.map(drop)
        });
        body.await?
    });
    let is_there = there.wait_for(|count| *count > before);
    within(TIME_LIMIT, is_there).await.unwrap();
    task
}

#[tokio::test]
async fn a_deadlock_is_named_with_what_ends_it() {
    let server = RedisServer::start().await;
    let free = ran(&server, &["graph"]).await;
    let nothing = "no holder waits for another lock\n";
    assert_eq!((free.code, &*free.stdout), (0, nothing));

    let (locks, others) = (connect(server.url()).await, connect(server.url()).await);
    let all = watch::Sender::new(0);
    let one = nest(&locks, ["a", "b"], &all).await;
    let other = nest(&others, ["b", "a"], &all).await;
    let deadlocked = async || ran(&server, &["graph", "--json"]).await.code == 21;
    eventually(TIME_LIMIT, deadlocked).await;
    let objects = ran(&server, &["graph", "--json"]).await.objects();
    for (object, [holds, waits_for]) in objects.iter().zip([["a", "b"], ["b", "a"]]) {
        assert_eq!(object["holds"], holds);
        assert_eq!(object["waits_for"], waits_for);
        assert_eq!(
            (&object["cycle"], &object["sure"]),
            (&1.into(), &true.into())
        );
        assert_eq!(object["holder"]["process"], std::process::id());
        assert_eq!(object["holder"]["function"], "shop::move");
        assert_eq!(object["waiter"]["holds"][0]["id"], object["holder"]["id"]);
    }
    let text = ran(&server, &["graph"]).await;
    for part in [
        "WAITS FOR",
        "deadlock  `shop::move`",
        "holds `b`",
        "release --force 'a'",
    ] {
        assert!(text.stdout.contains(part), "no {part:?} in {}", text.stdout);
    }
    let doctor = ran(&server, &["doctor"]).await;
    assert_eq!(doctor.code, 21);
    assert!(
        doctor.stdout.contains("error   cycles "),
        "{}",
        doctor.stdout
    );

    let freed = ran(&server, &["release", "--force", "--yes", "a"]).await;
    assert_eq!(freed.code, 0, "{freed:?}");
    let lost = within(TIME_LIMIT, one).await.unwrap();
    assert!(matches!(lost, Err(LockError::Lost { .. })), "{lost:?}");
    within(TIME_LIMIT, other).await.unwrap().unwrap();
    assert_eq!(ran(&server, &["graph"]).await.stdout, nothing);
}

#[tokio::test]
async fn a_store_that_does_not_know_is_refused() {
    let server = RedisServer::start().await;
    let url = server.url().replace("redis://", "redis+setnx://");
    let output = lockctl(&server, &["graph", "--url", &url]).output();
    let output = within(TIME_LIMIT, output).await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("setnx` does not support it: "), "{error}");
}

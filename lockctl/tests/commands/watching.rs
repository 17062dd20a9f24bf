//! `watch` and `bench`.

use std::time::Duration;

use serde_json::Value;
use tests::{LONG, RedisServer, TIME_LIMIT, connect, queued, release, take, take_turn, within};

use crate::support::{Running, lockctl, ran};

async fn event(watch: &mut Running) -> Value {
    serde_json::from_str(&watch.line().await).unwrap()
}

/// What happens to the lock `key` next.
async fn to_key(watch: &mut Running) -> String {
    loop {
        let seen = event(watch).await;
        if seen["key"] == "key" {
            return seen["event"].as_str().unwrap().to_owned();
        }
    }
}

#[tokio::test]
async fn each_grant_release_loss_and_hand_over_is_a_line() {
    let mut server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let _before = take(&locks, "other", LONG).await;
    let args = ["watch", "--every", "100ms", "--json"];
    let mut watch = Running::start(lockctl(&server, &args));
    let watching = event(&mut watch).await;
    assert_eq!(
        (&watching["event"], &watching["count"]),
        (&"watching".into(), &1.into())
    );
    let guard = take(&locks, "key", LONG).await;
    let granted = event(&mut watch).await;
    assert_eq!(
        (&granted["event"], &granted["key"]),
        (&"granted".into(), &"key".into())
    );
    assert_eq!(granted["holder"]["process"], std::process::id());
    assert!(granted["at"].is_string());
    let next = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    release(guard).await;
    let next = within(TIME_LIMIT, next).await.unwrap();
    assert_eq!(to_key(&mut watch).await, "released");
    assert_eq!(to_key(&mut watch).await, "handed over");
    release(next).await;
    assert_eq!(to_key(&mut watch).await, "released");

    for _ in 0..5 {
        take_turn(&locks, "short").await;
    }
    let mut unseen = 0;
    while unseen < 5 {
        let seen = event(&mut watch).await;
        unseen += match seen["event"].as_str().unwrap() {
            "unseen" => seen["count"].as_u64().unwrap(),
            // One of them was seen after all.
            "granted" => 1,
            _ => 0,
        };
    }

    server.kill().await;
    while event(&mut watch).await["event"] != "unavailable" {}
    server.restart().await;
    while event(&mut watch).await["event"] != "available" {}
}

#[tokio::test]
async fn a_bench_measures_within_its_bounds_and_leaves_nothing() {
    let server = RedisServer::start().await;
    let text = ran(&server, &["bench", "--seconds", "1", "--rate", "100"]).await;
    assert!(text.stdout.contains("hand-over"), "{text:?}");
    let json = ran(
        &server,
        &["bench", "--seconds", "3", "--rate", "100", "--json"],
    )
    .await;
    let measures = json.objects();
    let names: Vec<_> = measures
        .iter()
        .map(|it| it["measure"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["cycle", "hand-over", "wait"]);
    for measure in &measures {
        let count = measure["count"].as_u64().unwrap();
        assert!((1..=110).contains(&count), "{measure}");
        assert!(measure["median_us"].as_u64() <= measure["max_us"].as_u64());
    }
    assert_eq!(server.keys("*").await, ["lock:fence"]);
}

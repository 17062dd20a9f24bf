//! Answers are serialised with their field names; times name their unit.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_runtime::LockManager;
use serde_json::{Value, json, to_value};
use tests::{LONG, queued, take};

/// Takes a field out of an object.
fn number(object: &mut Value, field: &str) -> u64 {
    let taken = object.as_object_mut().unwrap().remove(field);
    taken.and_then(|it| it.as_u64()).expect(field)
}

fn of_a_lease(millis: u64) -> bool {
    (LONG / 2..=LONG).contains(&Duration::from_millis(millis))
}

#[tokio::test]
async fn times_name_their_unit_and_words_are_texts() {
    let locks = LockManager::connect("memory:").await.unwrap();
    let _guard = take(&locks, "50%", LONG).await;
    let request = locks.lock("50%").permits(4).function("shop::count");
    let _waiter = queued(&locks, request.wait_forever()).await;

    let mut status = to_value(locks.status("50%").await.unwrap()).unwrap();
    let holder = &mut status["holders"][0];
    assert!(of_a_lease(number(holder, "remaining_ms")));
    let since = UNIX_EPOCH + Duration::from_millis(number(holder, "since_unix_ms"));
    assert!(SystemTime::now().duration_since(since).unwrap() < LONG);
    let waiter = &mut status["waiters"][0];
    assert!(number(waiter, "waited_ms") < 60_000);
    let (here, host) = (std::process::id(), waiter["host"].clone());
    let expected = json!({
        "key": "50%25",
        "holders": [{
            "id": "1", "process": here, "host": host, "function": null,
            "fencing_token": 1, "may_have_waited": false, "cooling_down": false, "ticket": false, "answers": null, "servers": null,
        }],
        "waiting": 1,
        "waiters": [{
            "id": "2", "process": here, "host": host, "function": "shop::count",
            "kind": "4 permits", "holds": [],
        }],
    });
    assert_eq!(status, expected);

    let mut overview = to_value(locks.overview("*").await.unwrap()).unwrap();
    let lock = &mut overview["locks"][0];
    assert!(number(lock, "longest_wait_ms") < 60_000);
    assert_eq!(
        (&lock["kind"], &lock["held_by"]),
        (&json!("exclusive"), &json!(1))
    );
    assert_eq!(
        overview.as_object().unwrap().len(),
        1,
        "what is private stays so"
    );
}

#[tokio::test]
async fn findings_changes_and_health_are_objects() {
    let locks = LockManager::connect("memory:").await.unwrap();
    let before = locks.overview("*").await.unwrap();
    let _guard = take(&locks, "key", LONG).await;
    let changes = locks.overview("*").await.unwrap().changes_since(&before);
    let changes = to_value(changes).unwrap();
    assert_eq!(
        (&changes[0]["key"], &changes[0]["kind"]),
        (&json!("key"), &json!("granted"))
    );

    let findings = to_value(locks.diagnose().await.unwrap()).unwrap();
    let expected = json!([{
        "check": "leases", "severity": "fine", "found": "every held lock has an end",
        "meaning": null, "advice": null,
    }, {
        "check": "cycles", "severity": "fine", "found": "no holders are seen to wait for each other",
        "meaning": null, "advice": null,
    }]);
    assert_eq!(findings, expected);

    let mut health = to_value(locks.health().await).unwrap();
    assert!(number(&mut health, "round_trip_us") < 60_000_000);
    let expected = json!({
        "connected": true, "grants": true, "reachable": 1, "servers": 1,
        "quarantined_until_unix_ms": null, "last_error": null,
    });
    assert_eq!(health, expected);
    locks.shutdown().await;
    let mut health = to_value(locks.health().await).unwrap();
    assert!(number(&mut health["last_error"], "at_unix_ms") > 0);
}

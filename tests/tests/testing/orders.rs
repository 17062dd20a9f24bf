//! A test fails that takes two locks in both orders, since its callers can wait for each other.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lock_runtime::testing::Locks;
use lock_runtime::{LockError, LockRequest, distributed_lock};

/// What the drop says, if it panics.
fn complaint(locks: Locks) -> Option<String> {
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(locks)));
    let panic = dropped.err()?;
    Some(*panic.downcast::<String>().expect("a text"))
}

async fn nest(outer: LockRequest, inner: LockRequest) {
    let body = outer.run(async |_| inner.acquire().await.map(drop));
    body.await.expect("a lock").expect("another one");
}

/// Takes each pair, the second lock under the first one.
async fn take(locks: &Locks, pairs: &[[&str; 2]]) {
    for [outer, inner] in pairs {
        nest(locks.manager().lock(*outer), locks.manager().lock(*inner)).await;
    }
}

#[distributed_lock(key = "account:{account}")]
async fn pay(account: u8) -> Result<(), LockError> {
    ship("lamp", None).await
}

#[distributed_lock(key = "stock:{item}")]
async fn ship(item: &str, account: Option<u8>) -> Result<(), LockError> {
    match account {
        Some(account) => Box::pin(pay_back(account)).await,
        None => Ok(()),
    }
}

#[distributed_lock(key = "account:{account}")]
async fn pay_back(account: u8) -> Result<(), LockError> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn both_orders_fail_the_test_which_names_locks_functions_and_places() {
    let locks = Locks::new();
    locks.scope(pay(7)).await.expect("a payment");
    locks.scope(ship("lamp", Some(7))).await.expect("a parcel");
    let complaint = complaint(locks).expect("both orders");
    for part in [
        "`account:7` and `stock:lamp` are taken in both orders",
        "`account:7` by `testing::orders::pay` at ",
        "orders.rs:",
        "under it `stock:lamp` by `testing::orders::ship` at ",
        "under it `account:7` by `testing::orders::pay_back` at ",
    ] {
        assert!(complaint.contains(part), "no {part:?} in {complaint}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_compared_whatever_is_around_them() {
    let locks = Locks::new();
    take(&locks, &[["a", "b"], ["b", "c"], ["c", "a"]]).await;
    assert_eq!(complaint(locks), None, "no two of them");
    let locks = Locks::new();
    let (a, b) = (|| locks.manager().lock("a"), || locks.manager().lock("b"));
    let middle = locks.manager().lock("m");
    let (inner, outer) = (b(), a());
    let body = outer.run(async |_| middle.run(async |_| inner.acquire().await.map(drop)).await);
    body.await.expect("a").expect("m").expect("b");
    nest(b(), a()).await;
    assert!(complaint(locks).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_refused_wait_counts_too() {
    let locks = Locks::new();
    let other = locks.hold("b").await.expect("it is free");
    let inner = locks.manager().lock("b").acquire();
    let body = locks
        .manager()
        .lock("a")
        .run(async |_| inner.await.is_err());
    assert!(body.await.expect("a lock"));
    drop(other);
    take(&locks, &[["b", "a"]]).await;
    assert!(complaint(locks).is_some());
}

#[tokio::test(start_paused = true)]
async fn readers_wait_behind_writers_and_count() {
    let locks = Locks::new();
    let read = |key| locks.manager().lock(key).read();
    nest(read("a"), read("b")).await;
    nest(read("b"), read("a")).await;
    assert!(complaint(locks).is_some());
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_taken_together_have_one_order() {
    let locks = Locks::new();
    for keys in [["a", "b"], ["b", "a"]] {
        let guard = locks.manager().lock_all(keys).acquire().await;
        drop(guard.expect("both"));
    }
    take(&locks, &[["a", "c"], ["b", "c"]]).await;
    let together = locks.manager().lock_all(["b", "a"]);
    nest(together, locks.manager().lock("c")).await;
    assert_eq!(complaint(locks), None);
}

#[tokio::test(start_paused = true)]
async fn a_lock_inside_another_one_is_in_the_way_of_both_taken_together() {
    let locks = Locks::new();
    let guard = locks.manager().lock_all(["a", "b"]).acquire().await;
    drop(guard.expect("both"));
    take(&locks, &[["b", "a"]]).await;
    assert!(
        complaint(locks).is_some(),
        "one may hold `a`, the other one `b`"
    );
}

#[tokio::test(start_paused = true)]
async fn who_does_not_wait_is_in_nobodys_way() {
    let locks = Locks::new();
    take(&locks, &[["a", "b"]]).await;
    let tries = locks.manager().lock("a").try_once();
    nest(locks.manager().lock("b"), tries).await;
    assert_eq!(complaint(locks), None);
}

#[tokio::test(start_paused = true)]
async fn under_the_same_lock_nobody_meets_the_other() {
    let locks = Locks::new();
    for order in [[["a", "b"]], [["b", "a"]]] {
        let around = locks.manager().lock("around");
        let body = around.run(async |_| take(&locks, &order).await);
        body.await.expect("a lock");
    }
    assert_eq!(complaint(locks), None);

    let locks = Locks::new();
    for order in [[["a", "b"]], [["b", "a"]]] {
        let around = locks.manager().lock("around").read();
        let body = around.run(async |_| take(&locks, &order).await);
        body.await.expect("a lock");
    }
    assert!(complaint(locks).is_some(), "two readers may meet");
}

#[tokio::test(start_paused = true)]
async fn one_lock_after_the_other_and_reentrant_calls_have_no_order() {
    let locks = Locks::new();
    for key in ["a", "b", "a"] {
        drop(locks.manager().lock(key).acquire().await.expect("a lock"));
    }
    // Nobody works under a guard that is only kept.
    for keys in [["a", "b"], ["b", "a"]] {
        let [outer, inner] = keys.map(|it| locks.manager().lock(it).acquire());
        let guards = (outer.await.expect("a lock"), inner.await.expect("a lock"));
        drop(guards);
    }
    let again = locks.manager().lock("a").reentrant();
    nest(locks.manager().lock("a"), again).await;
    assert_eq!(complaint(locks), None);
}

#[tokio::test(start_paused = true)]
async fn a_pair_may_be_allowed() {
    for (one, other, allowed) in [
        ("a", "b", true),
        ("b", "a", true),
        ("*", "*", true),
        ("a*", "?", true),
        ("a", "c", false),
        ("a", "a", false),
    ] {
        let locks = Locks::new();
        take(&locks, &[["a", "b"], ["b", "a"]]).await;
        locks.allow_both_orders(one, other);
        assert_eq!(complaint(locks).is_none(), allowed, "{one} {other}");
    }
}

#[test]
#[should_panic(expected = "the test itself")]
fn a_test_that_panics_already_says_why() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let locks = Locks::new();
        take(&locks, &[["a", "b"], ["b", "a"]]).await;
        panic!("the test itself");
    });
}

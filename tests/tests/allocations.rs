//! Promise: the attribute allocates the key and nothing else.
//!
//! Section: expansion.md#what-it-costs

use std::pin::{Pin, pin};

use lock_runtime::testing::Locks;
use lock_runtime::{LockError, LockKey, LockManager, distributed_lock, key};
use tokio::runtime::Builder;

#[distributed_lock(key = "stock:{item}:{count:04}", manager = locks)]
async fn annotated(locks: &LockManager, item: &str, count: u32) -> Result<u32, LockError> {
    std::future::ready(()).await;
    Ok(count)
}

/// What the expansion asks of the runtime, with a key that is there already.
async fn calls(locks: &LockManager, key: LockKey, count: u32) -> Result<u32, LockError> {
    use lock_runtime::__private::{Function, Site, acquire_with};
    static LOCK_FUNCTION: Function = Function::new("tests::calls", || {});
    let guard = acquire_with(locks, const { &Site::new() }, &LOCK_FUNCTION, [Ok(key)]).await?;
    let body = async move {
        std::future::ready(()).await;
        Ok(count)
    };
    let output = guard.hold(body).await?;
    guard.release();
    output
}

async fn by_hand(locks: &LockManager, item: &str, count: u32) -> Result<u32, LockError> {
    let key = key!("stock:{item}:{count:04}");
    locks
        .lock(key)
        .run(async |_| {
            std::future::ready(()).await;
            count
        })
        .await
}

/// How often this thread allocates; a growing or shrinking allocation counts again.
fn allocations(run: impl FnOnce()) -> u64 {
    allocation_counter::measure(run).count_total
}

/// The median of many runs: tables grow now and then, in whichever run comes upon it.
fn usual(run: impl Fn() -> u64) -> u64 {
    let mut counts: Vec<_> = (0..201).map(|_| run()).collect();
    counts.sort_unstable();
    counts[counts.len() / 2]
}

#[test]
fn allocates_the_key_and_nothing_else() {
    // Its driver is a task of this runtime. A thread of its own would do what this one does now and then.
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let locks = runtime.block_on(async { Locks::new() });
    let locks = locks.manager();
    let block_on = |call: Pin<&mut dyn Future<Output = Result<u32, LockError>>>| {
        runtime.block_on(call).unwrap()
    };
    let (item, count) = ("lamp", 2);

    let unpolled = allocations(|| drop(annotated(locks, item, count)));
    assert_eq!(unpolled, 0);

    let key = allocations(|| drop(key!("stock:{item}:{count:04}")));
    let locked = usual(|| {
        allocations(|| {
            block_on(pin!(annotated(locks, item, count)));
        })
    });
    let bare = usual(|| {
        let key = key!("stock:{item}:{count:04}").unwrap();
        allocations(|| {
            block_on(pin!(calls(locks, key, count)));
        })
    });
    assert_eq!(locked, key + bare);

    let unannotated = usual(|| {
        allocations(|| {
            block_on(pin!(by_hand(locks, item, count)));
        })
    });
    assert!(locked <= unannotated, "{locked} and {unannotated}");
    println!(
        "allocations: {locked}, {key} of them for the key; {unannotated} without the attribute"
    );
}

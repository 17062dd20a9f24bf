//! Promise: the attribute allocates nothing beyond the key.

use lock_runtime::{LockConfig, LockError, LockManager, distributed_lock, key};

#[distributed_lock(key = "stock:{item}:{count:04}", ttl = "10s", wait = "5s", guard = lock, manager = locks)]
async fn annotated(locks: &LockManager, item: &str, count: u32) -> Result<u64, LockError> {
    std::future::ready(()).await;
    Ok(u64::from(count) + lock.fencing_token().get())
}

async fn by_hand(locks: &LockManager, item: &str, count: u32) -> Result<u64, LockError> {
    let lock = locks
        .lock(key!("stock:{item}:{count:04}"))
        .acquire()
        .await?;
    let body = async {
        std::future::ready(()).await;
        Ok(u64::from(count) + lock.fencing_token().get())
    };
    let output = lock.hold(body).await?;
    lock.release();
    output
}

fn count(run: impl FnOnce()) -> u64 {
    allocation_counter::measure(run).count_total
}

#[test]
fn probe() {
    let config = LockConfig::new("memory:allocations").unwrap();
    let locks = futures_executor::block_on(LockManager::connect(config)).unwrap();
    for _ in 0..10 {
        let a = count(|| drop(futures_executor::block_on(annotated(&locks, "lamp", 2)).unwrap()));
        let b = count(|| drop(futures_executor::block_on(by_hand(&locks, "lamp", 2)).unwrap()));
        let n = count(|| drop(annotated(&locks, "lamp", 2)));
        let item = "lamp";
        let c = 2;
        let k = count(|| drop(key!("stock:{item}:{c:04}")));
        let key = key!("stock:{item}:{c:04}");
        let h = count(|| drop(locks.lock(key).acquire()));
        println!("{a} {b} {n} {k} {h}");
    }
}

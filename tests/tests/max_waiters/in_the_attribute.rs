//! `max_waiters = …` in the attribute.
//!
//! Section: guarantees.md#a-queue-of-limited-length

use lock_runtime::{LockError, LockManager, distributed_lock};
use tests::{LONG, TIME_LIMIT, connect, poll_once, release, take, unique, waits, within};

const MOST: u32 = 1;

struct Shop {
    locks: LockManager,
    most: u32,
}

impl Shop {
    #[distributed_lock(key = "key", wait = "forever", max_waiters = 1, manager = self.locks)]
    async fn by_number(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "key", wait = "forever", max_waiters = MOST, manager = self.locks)]
    async fn by_constant(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "key", wait = "forever", max_waiters = self.most, manager = self.locks)]
    async fn by_expression(&self) -> Result<(), LockError> {
        Ok(())
    }
}

#[tokio::test]
async fn a_function_is_refused_where_too_many_wait() {
    let url = format!("memory:{}", unique("store"));
    let locks = connect(&*url).await;
    let mut shop = Shop {
        locks: locks.clone(),
        most: 1,
    };
    let guard = take(&locks, "key", LONG).await;
    let mut waiter = Box::pin(locks.lock("key").wait_forever().acquire());
    assert!(poll_once(&mut waiter).await.is_pending());
    waits(&locks, "key", 1).await;
    for refused in [
        within(TIME_LIMIT, shop.by_number()).await,
        within(TIME_LIMIT, shop.by_constant()).await,
        within(TIME_LIMIT, shop.by_expression()).await,
    ] {
        let refused = refused.expect_err("one waits");
        assert!(matches!(refused, LockError::Contended { .. }), "{refused}");
    }
    shop.most = 0;
    let invalid = within(TIME_LIMIT, shop.by_expression()).await;
    let invalid = invalid.expect_err("nobody may wait");
    assert!(
        invalid.to_string().starts_with("invalid max_waiters"),
        "{invalid}"
    );
    release(guard).await;
    release(within(TIME_LIMIT, waiter).await.expect("its turn")).await;
    shop.most = 1;
    within(TIME_LIMIT, shop.by_expression())
        .await
        .expect("it is free");
}

//! The tests of `docs/testing.md`, as they stand there.

use std::time::Duration;

use lock_runtime::testing::{Event, Locks};
use lock_runtime::{LockError, distributed_lock};
use tokio::join;
use tokio::time::{advance, sleep};

#[distributed_lock(key = "stock:{item}", ttl = "10s", wait = "2s")]
async fn buy(item: &str) -> Result<String, LockError> {
    sleep(Duration::from_secs(1)).await; // stands for a query of the database
    Ok(format!("one {item}"))
}

#[tokio::test(start_paused = true)]
async fn a_customer_is_turned_away_after_two_seconds() {
    let locks = Locks::new();
    let _other = locks.hold("stock:lamp").await.expect("it is free");

    let refused = locks.scope(buy("lamp")).await;

    assert!(matches!(refused, Err(LockError::Contended { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_customer_waits_until_somebody_else_is_done() -> Result<(), LockError> {
    let locks = Locks::new();
    let other = locks.hold("stock:lamp").await?;

    let done = async {
        sleep(Duration::from_secs(1)).await;
        drop(other);
    };
    let (bought, ()) = join!(locks.scope(buy("lamp")), done);

    assert_eq!(bought?, "one lamp");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sold_while_the_lock_server_is_out_of_reach() -> Result<(), LockError> {
    let locks = Locks::new();

    locks.disconnect();
    let refused = locks.scope(buy("lamp")).await;
    assert!(refused.is_err_and(|error| error.is_retryable()));

    locks.reconnect();
    locks.scope(buy("lamp")).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_sale_stops_when_its_lock_is_lost() {
    let locks = Locks::new();

    let suspended = async {
        sleep(Duration::from_millis(500)).await;
        advance(Duration::from_secs(60)).await; // the machine slept, and renewed nothing
    };
    let (sale, ()) = join!(locks.scope(buy("lamp")), suspended);

    assert!(matches!(sale, Err(LockError::Lost { .. })));
}

#[tokio::test(start_paused = true)]
async fn the_account_is_locked_before_the_stock() -> Result<(), LockError> {
    let locks = Locks::new();

    let account = locks.manager().lock("account:ann").acquire().await?;
    locks.scope(buy("lamp")).await?;
    assert!(locks.is_held("account:ann"));
    account.release();

    let taken = |key: &str| Event::Acquired(key.parse().unwrap());
    let order = [taken("account:ann"), taken("stock:lamp")];
    assert_eq!(locks.history()[..2], order);
    Ok(())
}

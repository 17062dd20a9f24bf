//! A writer that was stopped past the end of its lease goes on, and PostgreSQL refuses its transaction; with sqlx.
//!
//! Look at `transfer`: it reads, stops, and writes what it has computed from what it read. Its transaction begins with
//! `assert_fence`, which fails once somebody else has had the lock, and otherwise keeps everybody else out until the
//! transaction has ended. Lock and accounts are in the same database.
//!
//! ```text
//! LOCK_URL=postgres://postgres@127.0.0.1/postgres \
//!     cargo run --manifest-path examples/postgres/Cargo.toml --example transfer_sqlx
//! ```

use std::error::Error;
use std::time::Duration;

use lock_runtime::{LockGuard, LockManager};
use sqlx::{Executor as _, PgPool};
use tokio::sync::oneshot;

const LEASE: Duration = Duration::from_millis(500);

/// Moves money from the current account of customer 7 to the savings. The caller holds the customer's lock.
async fn transfer(
    pool: &PgPool,
    lock: &LockGuard,
    amount: i64,
    standstill: impl Future<Output = ()>,
) -> Result<(), sqlx::Error> {
    let (current, savings): (i64, i64) =
        sqlx::query_as("SELECT current, savings FROM recipe_account WHERE customer = 7")
            .fetch_one(pool)
            .await?;
    standstill.await;
    let mut transaction = pool.begin().await?;
    sqlx::query("SELECT lock_runtime.assert_fence($1, $2)")
        .bind(lock.key().as_str())
        .bind(lock.fencing_token().as_i64())
        .execute(&mut *transaction)
        .await?;
    sqlx::query("UPDATE recipe_account SET current = $1, savings = $2 WHERE customer = 7")
        .bind(current - amount)
        .bind(savings + amount)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCK_URL")?;
    let locks = LockManager::connect(&*url).await?;
    let pool = PgPool::connect(&url).await?;
    pool.execute(
        "DROP TABLE IF EXISTS recipe_account;
         CREATE TABLE recipe_account (customer bigint PRIMARY KEY, current bigint, savings bigint);
         INSERT INTO recipe_account VALUES (7, 100, 0)",
    )
    .await?;

    let lock = || locks.lock("customer:7").ttl(LEASE).wait_forever();
    let slow = lock().renew(false).acquire().await?;
    println!("10 will be saved, fencing token {}", slow.fencing_token());
    let (stop, stopped) = oneshot::channel();
    let (resume, resumed) = oneshot::channel();
    let late = tokio::spawn({
        let pool = pool.clone();
        let standstill = async {
            let _ = stop.send(());
            let _ = resumed.await; // a virtual machine is moved
        };
        async move { transfer(&pool, &slow, 10, standstill).await }
    });

    stopped.await?;
    let quick = lock().acquire().await?;
    println!("30 will be saved, fencing token {}", quick.fencing_token());
    transfer(&pool, &quick, 30, async {}).await?;
    println!("30 are saved");

    let _ = resume.send(());
    match late.await? {
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("LR001") => {
            println!("10 are refused: {error}");
        }
        other => println!("10 should have been refused: {other:?}"),
    }
    let (current, savings): (i64, i64) =
        sqlx::query_as("SELECT current, savings FROM recipe_account")
            .fetch_one(&pool)
            .await?;
    println!("current account {current}, savings {savings}");
    pool.execute("DROP TABLE recipe_account").await?;
    Ok(())
}

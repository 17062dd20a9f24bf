//! A writer that was stopped past the end of its lease goes on, and PostgreSQL refuses its transaction; with Diesel.
//!
//! Look at `transfer`: it reads, stops, and writes what it has computed from what it read. Its transaction begins with
//! `assert_fence`, which fails once somebody else has had the lock, and otherwise keeps everybody else out until the
//! transaction has ended. Lock and accounts are in the same database.
//!
//! ```text
//! LOCK_URL=postgres://postgres@127.0.0.1/postgres \
//!     cargo run --manifest-path examples/postgres/Cargo.toml --example transfer_diesel
//! ```

use std::error::Error;
use std::time::Duration;

use diesel::prelude::*;
use diesel::result::Error as SqlError;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Text};
use diesel_async::{
    AsyncConnection as _, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection as _,
};
use lock_runtime::{LockGuard, LockManager};
use tokio::sync::oneshot;

diesel::table! {
    recipe_account (customer) {
        customer -> BigInt,
        current -> BigInt,
        savings -> BigInt,
    }
}
use recipe_account::dsl::{current, recipe_account as accounts, savings};

const LEASE: Duration = Duration::from_millis(500);

/// Moves money from the current account of customer 7 to the savings. The caller holds the customer's lock.
async fn transfer(
    connection: &mut AsyncPgConnection,
    lock: &LockGuard,
    amount: i64,
    standstill: impl Future<Output = ()>,
) -> Result<(), SqlError> {
    let account = accounts.find(7);
    let (before, saved): (i64, i64) = account.select((current, savings)).first(connection).await?;
    standstill.await;
    let (key, fence) = (lock.key().as_str(), lock.fencing_token().as_i64());
    connection
        .transaction(async |transaction| {
            sql_query("SELECT lock_runtime.assert_fence($1, $2)")
                .bind::<Text, _>(key)
                .bind::<BigInt, _>(fence)
                .execute(transaction)
                .await?;
            diesel::update(account)
                .set((current.eq(before - amount), savings.eq(saved + amount)))
                .execute(transaction)
                .await?;
            Ok(())
        })
        .await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCK_URL")?;
    let locks = LockManager::connect(&*url).await?;
    let mut connection = AsyncPgConnection::establish(&url).await?;
    connection
        .batch_execute(
            "DROP TABLE IF EXISTS recipe_account;
             CREATE TABLE recipe_account (customer bigint PRIMARY KEY, current bigint NOT NULL, savings bigint NOT NULL);
             INSERT INTO recipe_account VALUES (7, 100, 0)",
        )
        .await?;

    let lock = || locks.lock("customer:7").ttl(LEASE).wait_forever();
    let slow = lock().renew(false).acquire().await?;
    println!("10 will be saved, fencing token {}", slow.fencing_token());
    let (stop, stopped) = oneshot::channel();
    let (resume, resumed) = oneshot::channel();
    let late = tokio::spawn({
        let mut connection = AsyncPgConnection::establish(&url).await?;
        let standstill = async {
            let _ = stop.send(());
            let _ = resumed.await; // a virtual machine is moved
        };
        async move { transfer(&mut connection, &slow, 10, standstill).await }
    });

    stopped.await?;
    let quick = lock().acquire().await?;
    println!("30 will be saved, fencing token {}", quick.fencing_token());
    transfer(&mut connection, &quick, 30, async {}).await?;
    println!("30 are saved");

    let _ = resume.send(());
    match late.await? {
        // Diesel does not tell the SQLSTATE, which is LR001.
        Err(SqlError::DatabaseError(_, error)) if error.message().contains("fencing token") => {
            println!("10 are refused: {}", error.message());
        }
        other => println!("10 should have been refused: {other:?}"),
    }
    let (left, saved): (i64, i64) = accounts
        .select((current, savings))
        .first(&mut connection)
        .await?;
    println!("current account {left}, savings {saved}");
    connection
        .batch_execute("DROP TABLE recipe_account")
        .await?;
    Ok(())
}

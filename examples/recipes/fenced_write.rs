//! A writer that was stopped past the end of its lease writes late, and the database refuses it.
//!
//! Look at the SQL in `write`: it compares the fencing token with that of the last writer. The first writer blocks its
//! thread for longer than its lease, which nothing can interrupt; meanwhile the second one takes the lock and writes. Look
//! at the order in `update` as well: the lock is released after the commit, never before.
//!
//! ```text
//! cargo run -p recipes --example fenced_write
//! LOCK_URL=redis://127.0.0.1:6379 cargo run -p recipes --example fenced_write
//! ```

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use lock_runtime::{LockError, LockGuard, LockManager, distributed_lock};
use rusqlite::{Connection, params};
use tokio::sync::oneshot;

const LEASE: Duration = Duration::from_millis(500);

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("fencing token {0} is too old: somebody else has written since")]
    Overtaken(i64),
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
    #[error(transparent)]
    Lock(#[from] LockError),
}

struct Database(Mutex<Connection>);

impl Database {
    fn new() -> Result<Self, Failure> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(
            "CREATE TABLE stock (item TEXT PRIMARY KEY, count INTEGER, fence INTEGER);
             INSERT INTO stock VALUES ('lamp', 50, 0);",
        )?;
        Ok(Self(Mutex::new(connection)))
    }

    /// Returns when it is committed.
    fn write(&self, item: &str, count: i64, lock: &LockGuard) -> Result<(), Failure> {
        let fence = lock.fencing_token().as_i64();
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction()?;
        let rows = transaction.execute(
            "UPDATE stock SET count = ?1, fence = ?2 WHERE item = ?3 AND fence <= ?2",
            params![count, fence, item],
        )?;
        if rows == 0 {
            return Err(Failure::Overtaken(fence)); // the transaction is rolled back
        }
        Ok(transaction.commit()?)
    }

    fn count(&self, item: &str) -> Result<i64, Failure> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count =
            connection.query_row("SELECT count FROM stock WHERE item = ?1", [item], |row| {
                row.get(0)
            });
        Ok(count?)
    }
}

/// The lock is released when the body has returned, and so after the commit.
#[distributed_lock(key = "stock:{item}", ttl = LEASE, renew = false, guard = lock, manager = locks)]
async fn update(
    locks: &LockManager,
    database: &Database,
    item: &str,
    count: i64,
    compute: impl FnOnce() + Send,
) -> Result<(), Failure> {
    println!(
        "{count} will be written, fencing token {}",
        lock.fencing_token()
    );
    compute();
    database.write(item, count, lock)
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let url = std::env::var("LOCK_URL").unwrap_or_else(|_| "memory:writers".to_owned());
    let (slow, quick) = (
        LockManager::connect(&url).await?,
        LockManager::connect(&url).await?,
    );
    let database = Arc::new(Database::new()?);

    let (begin, standing) = oneshot::channel();
    let late = tokio::spawn({
        let database = Arc::clone(&database);
        async move {
            let standstill = || {
                let _ = begin.send(());
                thread::sleep(4 * LEASE); // a virtual machine is moved
            };
            update(&slow, &database, "lamp", 49, standstill).await
        }
    });
    let _ = standing.await;
    update(&quick, &database, "lamp", 48, || {}).await?;
    println!("48 is written");
    match late.await {
        Ok(Err(refused @ Failure::Overtaken(_))) => println!("49 is refused: {refused}"),
        other => println!("49 should have been refused: {other:?}"),
    }
    println!("the stock is {}", database.count("lamp")?);
    Ok(())
}

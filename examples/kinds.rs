//! Readers beside each other, a few printers for many jobs, and two accounts at once.
//!
//! Look at what overlaps: the readers and two of the three prints do, the writer is alone. The transfers name their
//! accounts in opposite orders and do not wait for each other for ever. Then a function deep below a locked one reads
//! the fencing token, and a job that has run cools down for a while.

use std::time::{Duration, Instant};

use lock_runtime::{LockError, distributed_lock};
use tokio::{join, time::sleep};

const WORK: Duration = Duration::from_millis(100);

#[distributed_lock(key = "catalogue", mode = "read")]
async fn look_up(item: &str) -> Result<usize, LockError> {
    sleep(WORK).await;
    Ok(item.len())
}

#[distributed_lock(key = "catalogue", mode = "write")]
async fn rename(_item: &str) -> Result<(), LockError> {
    sleep(WORK).await;
    Ok(())
}

#[distributed_lock(key = "printers", permits = 2)]
async fn print(_page: u32) -> Result<(), LockError> {
    sleep(WORK).await;
    Ok(())
}

#[distributed_lock(key = ["account:{from}", "account:{to}"])]
async fn transfer(from: &str, to: &str) -> Result<Option<u64>, LockError> {
    sleep(WORK).await;
    Ok(store(from, to))
}

/// Knows nothing of the lock, and sends its fence along with what it writes.
fn store(_from: &str, _to: &str) -> Option<u64> {
    lock_runtime::current().map(|lock| lock.fencing_token().get())
}

#[distributed_lock(key = "report:{day}", wait = "0s", min_hold = "2s")]
async fn report(day: u32) -> Result<(), LockError> {
    Ok(())
}

async fn timed<T>(what: &str, work: impl Future<Output = T>) -> T {
    let start = Instant::now();
    let output = work.await;
    println!("{what:<34} {:>4} ms", start.elapsed().as_millis());
    output
}

#[tokio::main]
async fn main() -> Result<(), LockError> {
    let url = std::env::var("LOCK_URL").unwrap_or_else(|_| "memory:".to_owned());
    let _locks = lock_runtime::init(url).await?;

    let readers = async { join!(look_up("lamp"), look_up("desk"), look_up("chair")) };
    let (lamp, desk, chair) = timed("three readers", readers).await;
    println!("  read {} letters", lamp? + desk? + chair?);

    let both = async { join!(look_up("lamp"), rename("lamp")) };
    let (read, written) = timed("a reader and a writer", both).await;
    read.and(written)?;

    let prints = async { join!(print(1), print(2), print(3)) };
    let (first, second, third) = timed("three prints on two printers", prints).await;
    first.and(second).and(third)?;

    let transfers = async { join!(transfer("ann", "bob"), transfer("bob", "ann")) };
    let (there, back) = timed("two transfers, there and back", transfers).await;
    println!("  fences {:?} and {:?}", there?, back?);

    report(7).await?;
    match timed("the same report again", report(7)).await {
        Err(LockError::Contended { .. }) => println!("  it has run already"),
        other => println!("  {other:?}"),
    }
    Ok(())
}

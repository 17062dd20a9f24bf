//! What a lock cannot do. `docs/guarantees.md` names these limits; here they
//! show.
//!
//! Look at what goes on without the lock: a turn of the body that had begun, and
//! a task that it had spawned. A key that somebody deletes makes two holders,
//! until the first one renews its lease.
//!
//! ```text
//! cargo run --example limits
//! LOCK_URL=redis://127.0.0.1:6379 cargo run --example limits
//! ```

use std::process::Command;
use std::time::{Duration, Instant};

use lock_runtime::{Clock, LockConfig, LockError, LockManager};
use tokio::time::sleep;

const TTL: Duration = Duration::from_secs(3);
const MINUTE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = Clock::manual();
    let config = LockConfig::new("memory:")?.clock(clock.clone());
    let locks = LockManager::connect(config).await?;
    a_turn_goes_on(&locks, &clock).await?;
    a_task_goes_on(&locks, &clock).await?;
    a_guard_does_not_know_its_owner().await?;
    tokens_in_memory_begin_anew().await?;
    match std::env::var("LOCK_URL") {
        Ok(url) => a_deleted_key_makes_two_holders(&url).await?,
        Err(_) => println!("a deleted key: set LOCK_URL to a Redis server's URL to see it"),
    }
    Ok(())
}

async fn a_turn_goes_on(locks: &LockManager, clock: &Clock) -> Result<(), LockError> {
    println!("a turn that has begun is not interrupted:");
    let guard = locks.lock("turn").acquire().await?;
    let body = async {
        println!("  the body computes, and does not await");
        clock.advance(MINUTE); // the machine sleeps meanwhile
        println!("  a minute later; held: {}", guard.is_held());
        7
    };
    println!("  its result counts: {:?}", guard.hold(body).await);
    Ok(())
}

async fn a_task_goes_on(locks: &LockManager, clock: &Clock) -> Result<(), LockError> {
    println!("what the body has started does not stop with it:");
    let guard = locks.lock("task").acquire().await?;
    let mut task = None;
    let body = async {
        task = Some(tokio::spawn(async {
            sleep(Duration::from_millis(200)).await;
            println!("  the task writes all the same");
        }));
        clock.advance(MINUTE);
        std::future::pending::<()>().await;
    };
    if let Err(error) = guard.hold(body).await {
        println!("  {error}");
    }
    if let Some(task) = task {
        let _ = task.await;
    }
    Ok(())
}

async fn a_guard_does_not_know_its_owner() -> Result<(), LockError> {
    println!("who holds a bare guard and asks again waits for itself:");
    let locks = LockManager::connect("memory:").await?;
    let guard = locks.lock("self").acquire().await?;
    let again = locks.lock("self").wait(Duration::from_millis(300));
    if let Err(error) = again.acquire().await {
        println!("  {error}");
    }
    guard.release();
    Ok(())
}

async fn tokens_in_memory_begin_anew() -> Result<(), LockError> {
    println!("fencing tokens in memory last as long as their store:");
    for store in ["first", "second"] {
        let locks = LockManager::connect("memory:").await?;
        let guard = locks.lock("fence").acquire().await?;
        println!("  {store} store: {}", guard.fencing_token());
    }
    Ok(())
}

async fn a_deleted_key_makes_two_holders(url: &str) -> Result<(), Box<dyn std::error::Error>> {
    println!("a key that is deleted makes two holders, until the first one renews:");
    let locks = LockManager::connect(url).await?;
    let first = locks.lock("limits").ttl(TTL).acquire().await?;
    let delete = ["-u", url, "DEL", "lock:{limits}"];
    let deleted = Command::new("redis-cli").args(delete).output()?;
    print!(
        "  redis-cli DEL: {}",
        String::from_utf8_lossy(&deleted.stdout)
    );
    let start = Instant::now();
    let second = locks.lock("limits").ttl(TTL).acquire().await?;
    for (name, guard) in [("first", &first), ("second", &second)] {
        let (token, held) = (guard.fencing_token(), guard.is_held());
        println!("  {name} holder: fencing token {token}, held: {held}");
    }
    first.lost().await;
    let time = start.elapsed().as_millis();
    println!("  the first one is notified after {time} ms; the ttl is 3000 ms");
    Ok(())
}

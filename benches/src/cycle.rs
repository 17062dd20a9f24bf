//! What one uncontended cycle costs the caller's thread and the driver's: allocations and instructions.

use lock_runtime::{LockError, LockManager, distributed_lock, key};
use support::RedisServer;

use crate::alloc;
use crate::callgrind::{self, How};
use crate::systems::{Ceiling, Locks, Ours};

/// Cycles before the counted ones: what grows has grown by then.
const WARM: u64 = 200;
/// Cycles that are counted.
const CYCLES: u64 = 2_000;

#[distributed_lock(key = "cycle:{item}", manager = locks)]
async fn annotated(locks: &LockManager, item: u64) -> Result<u64, LockError> {
    Ok(item)
}

/// What the attribute does, by hand.
async fn by_hand(locks: &LockManager, item: u64) -> Result<u64, LockError> {
    let guard = locks.lock(key!("cycle:{item}")).acquire().await?;
    let output = guard.hold(async move { Ok(item) }).await?;
    guard.release();
    output
}

/// Runs that many cycles; what callgrind looks at.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn cycles(how: How, url: &str, count: u64) {
    match how {
        How::Attribute | How::Calls => {
            let locks = LockManager::connect(url).await.expect("a server");
            for item in 0..count {
                let done = match how {
                    How::Attribute => annotated(&locks, item).await,
                    _ => by_hand(&locks, item).await,
                };
                done.expect("the lock");
            }
        }
        How::Confirmed => confirmed(&Ours::connect(url).await, count).await,
        How::Ceiling => confirmed(&Ceiling::connect(url).await, count).await,
    }
}

/// Takes locks of different names, and waits for each release.
async fn confirmed(locks: &impl Locks, count: u64) {
    for item in 0..count {
        let guard = locks.take(&format!("cycle:{item}")).await;
        locks.free(guard).await;
    }
}

/// Prints what one cycle costs on a Redis server, with a confirmed release.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() {
    let server = RedisServer::start().await;
    let url = server.url();
    alloc::start();
    let [caller, driver] = allocations(&Ours::connect(&url).await).await;
    let [ceiling, _] = allocations(&Ceiling::connect(&url).await).await;
    println!("allocations a cycle: caller {caller:.1}, driver {driver:.1}; ceiling {ceiling:.1}");

    let ours = callgrind::a_cycle(How::Confirmed, &url, CYCLES).await;
    let ceiling = callgrind::a_cycle(How::Ceiling, &url, CYCLES).await;
    match (ours.as_deref(), ceiling.as_deref()) {
        (Ok([caller, driver @ ..]), Ok(ceiling)) => println!(
            "instructions a cycle: caller {caller:.0}, driver {:.0}; ceiling {:.0}",
            driver.iter().sum::<f64>(),
            ceiling.iter().sum::<f64>()
        ),
        (Err(reason), _) | (_, Err(reason)) => {
            println!("NOTICE: instructions are not counted: {reason}");
        }
        _ => println!("NOTICE: instructions are not counted: callgrind wrote nothing"),
    }
}

/// How often this thread and all others allocate in a cycle.
async fn allocations(locks: &impl Locks) -> [f64; 2] {
    confirmed(locks, WARM).await;
    let before = alloc::allocations();
    confirmed(locks, CYCLES).await;
    let after = alloc::allocations();
    [
        after.by_caller - before.by_caller,
        after.by_others - before.by_others,
    ]
    .map(|count| count as f64 / CYCLES as f64)
}

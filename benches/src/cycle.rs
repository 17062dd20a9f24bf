//! What one uncontended cycle costs the caller's thread and the driver's: allocations and instructions.

use std::time::Instant;

use lock_runtime::{LockError, LockManager, distributed_lock, key};
use support::RedisServer;

use crate::callgrind::{self, How};
use crate::stages::Stages;
use crate::systems::{Ceiling, Locks, Ours};
use crate::{alloc, cpu, server, watching};

/// Warm-up cycles: by then every buffer has grown to its final size.
const WARM: u64 = 200;
/// Cycles that are counted.
const CYCLES: u64 = 2_000;
/// Cycles that are timed.
const TIMED: u64 = 20_000;

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

/// Runs that many cycles under callgrind.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn cycles(how: How, url: &str, count: u64) {
    watching::listen(how);
    match how {
        How::Confirmed => confirmed(&Ours::connect(url).await, count).await,
        How::Ceiling => confirmed(&Ceiling::connect(url).await, count).await,
        _ => {
            let locks = LockManager::connect(url).await.expect("a server");
            for item in 0..count {
                let done = match how {
                    How::Calls => by_hand(&locks, item).await,
                    _ => annotated(&locks, item).await,
                };
                done.expect("the lock");
            }
        }
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

    times("ours", &server, &Ours::connect(&url).await).await;
    times("ceiling", &server, &Ceiling::connect(&url).await).await;

    let ours = callgrind::a_cycle_by_stage(How::Confirmed, &url, CYCLES).await;
    let ceiling = callgrind::a_cycle_by_stage(How::Ceiling, &url, CYCLES).await;
    match (ours.as_deref(), ceiling.as_deref()) {
        (Ok([caller, driver]), Ok([ceiling, ..])) => instructions(caller, driver, ceiling),
        (Err(reason), _) | (_, Err(reason)) => {
            println!("NOTICE: instructions are not counted: {reason}");
        }
        _ => println!("NOTICE: instructions are not counted: callgrind wrote nothing"),
    }
}

/// Prints instructions, and those of both threads by what they are for.
fn instructions(caller: &Stages, driver: &Stages, ceiling: &Stages) {
    let mut both = caller.clone();
    for (stage, count) in driver {
        *both.entry(*stage).or_default() += count;
    }
    let [caller, driver, ceiling] = [caller, driver, ceiling].map(|it| it.values().sum::<f64>());
    println!("instructions a cycle: caller {caller:.0}, driver {driver:.0}; ceiling {ceiling:.0}");
    println!("of both:");
    for (stage, count) in both {
        let (part, name) = (100.0 * count / (caller + driver), stage.name());
        println!("  {part:4.1} %  {count:6.0}  {name}");
    }
}

/// Prints how long a cycle takes, and where, with all threads and the kernel.
async fn times(name: &str, server: &RedisServer, locks: &impl Locks) {
    confirmed(locks, WARM).await;
    server::reset(server).await;
    let sample = async || {
        let driver = cpu::of_threads("lock-driver");
        let caller = cpu::of_process().saturating_sub(driver);
        let process = server::processor_seconds(server).await;
        [caller.as_secs_f64(), driver.as_secs_f64(), process]
    };
    let before = sample().await;
    let started = Instant::now();
    confirmed(locks, TIMED).await;
    let elapsed = started.elapsed().as_secs_f64();
    let after = sample().await;
    let scripts = server::statistics(server).await.script_us / 1e6;
    println!(
        "time of a cycle, {name}: {:.1} µs",
        elapsed / TIMED as f64 * 1e6
    );
    let print = |seconds: f64, whose: &str| {
        let (part, each) = (100.0 * seconds / elapsed, seconds / TIMED as f64 * 1e6);
        println!("  {part:4.1} %  {each:5.1} µs  {whose}");
    };
    let [caller, driver, process] = [0, 1, 2].map(|it| after[it] - before[it]);
    print(caller, "caller's thread");
    print(driver, "driver's thread");
    print(process - scripts, "server's process, without scripts");
    print(scripts, "scripts in the server");
    let rest = elapsed - caller - driver - process;
    print(rest, "nobody: waking up, and waiting for a processor");
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

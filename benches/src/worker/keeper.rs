//! Work with many of our locks at once: holding them, and going through different names.

use std::thread;
use std::time::Duration;

use lock_runtime::{LockConfig, LockGuard, LockManager};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::console::Console;
use super::job::Spec;
use crate::{alloc, cpu};

/// The number of concurrent requests.
const AT_ONCE: usize = 256;

/// Figures that the process reports about itself.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// How many locks are held.
    pub(crate) held: usize,
    /// How many of those that were taken are lost.
    pub(crate) lost: usize,
    /// Bytes allocated beyond those before the first lock.
    pub(crate) heap_bytes: i64,
    /// CPU time of the thread that keeps the leases.
    pub(crate) driver_ns: u64,
}

pub(super) async fn hold(spec: &Spec, console: &mut Console) {
    let locks = connect(spec).await;
    let mut guards = Vec::new();
    Console::say(&"ready");
    alloc::start();
    loop {
        let order = console.line().await;
        match order.split_once(' ') {
            Some(("take", count)) => {
                let count = number(count);
                guards = take(&locks, count).await;
                Console::say(&guards.len());
            }
            Some(("block", time)) => {
                thread::sleep(Duration::from_millis(number(time) as u64));
                Console::say(&"blocked");
            }
            _ if order == "drop" => {
                guards.clear();
                Console::say(&"dropped");
            }
            _ => Console::say(&sample(&order, &guards)),
        }
    }
}

pub(super) async fn keys(spec: &Spec, console: &mut Console) {
    let locks = connect(spec).await;
    cycles(&locks, 0..AT_ONCE).await;
    Console::say(&"ready");
    alloc::start();
    loop {
        let order = console.line().await;
        if let Some((from, to)) = order
            .strip_prefix("keys ")
            .and_then(|range| range.split_once(' '))
        {
            cycles(&locks, number(from)..number(to)).await;
            Console::say(&"done");
        } else {
            Console::say(&sample(&order, &[]));
        }
    }
}

fn sample(order: &str, guards: &[LockGuard]) -> Sample {
    assert_eq!(order, "sample", "an order that was not expected");
    let held = guards.iter().filter(|guard| guard.is_held()).count();
    Sample {
        held,
        lost: guards.len() - held,
        heap_bytes: alloc::live_bytes(),
        driver_ns: cpu::of_threads("lock-driver").as_nanos() as u64,
    }
}

async fn connect(spec: &Spec) -> LockManager {
    let config = LockConfig::new(&spec.url).expect("a URL");
    let config = config.ttl(Duration::from_millis(spec.ttl_ms));
    let locks = LockManager::connect(config).await;
    locks.expect("a server")
}

/// Takes that many locks, each with its own name.
async fn take(locks: &LockManager, count: usize) -> Vec<LockGuard> {
    let mut guards = Vec::with_capacity(count);
    for first in (0..count).step_by(AT_ONCE) {
        let mut asking = JoinSet::new();
        for number in first..count.min(first + AT_ONCE) {
            asking.spawn(locks.lock(format!("held:{number:07}")).acquire());
        }
        guards.extend(
            asking
                .join_all()
                .await
                .into_iter()
                .map(|guard| guard.expect("the lock")),
        );
    }
    guards
}

/// Takes each of these names once.
async fn cycles(locks: &LockManager, names: std::ops::Range<usize>) {
    let mut tasks = JoinSet::new();
    for first in 0..AT_ONCE {
        let locks = locks.clone();
        let names = names.clone().skip(first).step_by(AT_ONCE);
        tasks.spawn(async move {
            for name in names {
                let guard = locks.lock(format!("once:{name:07}")).acquire().await;
                let released = guard.expect("the lock").release_confirmed().await;
                released.expect("an answer");
            }
        });
    }
    tasks.join_all().await;
}

fn number(text: &str) -> usize {
    text.parse().expect("a number")
}

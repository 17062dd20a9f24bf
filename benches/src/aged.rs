//! One lock on etcd that was taken and released very often, without compaction: what a cycle costs by then, beside a
//! cycle at the start and one of a lock that is new.

use std::time::{Duration, Instant};

use lock_runtime::LockManager;
use support::EtcdServer;

use crate::report::{Bound, Report, Row, Unit};
use crate::stats::Sorted;

const CASE: &str = "etcd, one member, no compaction";
/// How many cycles are measured.
const SAMPLE: u32 = 1_000;
/// How many times as long a cycle may take by then.
const LIMIT: f64 = 1.5;

pub(crate) async fn measure(report: &mut Report, cycles: u32) {
    let Some(server) = EtcdServer::start("make bench-stores").await else {
        return;
    };
    println!("{CASE}");
    let manager = LockManager::connect(server.url());
    let manager = manager.await.expect("a member that was just started");
    cycle(&manager, "warm").await;
    let mut start = Vec::new();
    let calls = written(&server).await;
    let revision = server.revision().await;
    for _ in 0..SAMPLE {
        start.push(cycle(&manager, "aged").await);
    }
    let each = |count: u64| count as f64 / f64::from(SAMPLE);
    let calls = each(written(&server).await - calls);
    let revisions = each(server.revision().await - revision);
    for _ in SAMPLE..cycles {
        cycle(&manager, "aged").await;
    }
    let (mut aged, mut fresh) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLE {
        aged.push(cycle(&manager, "aged").await);
        fresh.push(cycle(&manager, "fresh").await);
    }
    let [start, aged, fresh] = [start, aged, fresh].map(|times| {
        let times = times
            .into_iter()
            .map(|it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX));
        times.collect::<Sorted>().quantile(0.5)
    });
    let row = |figure: &str, unit, value| Row::new(CASE, figure, unit, value);
    report.add(row("calls that write, each cycle", Unit::Plain, calls));
    report.add(row("revisions, each cycle", Unit::Plain, revisions));
    report.add(row("p50 of a cycle at the start", Unit::Nanoseconds, start));
    let after = format!("p50 of a cycle after {cycles} of the lock");
    let bound = Bound::at_most(LIMIT, aged / start, " x that at the start");
    report.add(row(&after, Unit::Nanoseconds, aged).bound(bound));
    let bound = Bound::at_most(LIMIT, aged / fresh, " x that of a new lock");
    let beside = "p50 of a cycle of a new lock by then, in turns with it";
    report.add(row(beside, Unit::Nanoseconds, fresh).bound(bound));
}

/// Takes and releases a lock; how long that took.
async fn cycle(manager: &LockManager, key: &str) -> Duration {
    let begun = Instant::now();
    let guard = manager.lock(key).acquire().await.expect("a free lock");
    guard.release_confirmed().await.expect("a release");
    begun.elapsed()
}

/// How many calls that write were answered.
async fn written(server: &EtcdServer) -> u64 {
    server.answered("Txn").await + server.answered("DeleteRange").await
}

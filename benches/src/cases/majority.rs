//! Five servers of which a majority decides, beside other libraries on the same servers: cycles, a hot key, one server
//! that is late, and two that are dead.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use support::{Proxy, RedisServer, RedlockFleet};

use crate::bench::Bench;
use crate::fleet;
use crate::hot::{Crowd, Hot, compete_at};
use crate::report::{Bound, Row, Unit};
use crate::stats::{Sorted, median};
use crate::systems::System;
use crate::worker::{Spec, Work};

const CASE: &str = "five servers, a majority decides";
/// Processes of one task each on the hot key.
const PROCESSES: usize = 8;
const BODY: Duration = Duration::from_millis(1);
/// How much later the answers of one server come.
const LATE: Duration = Duration::from_millis(20);

/// A value for each system that could be measured.
type Values = BTreeMap<System, f64>;

pub(super) async fn run(bench: &mut Bench) {
    let mut fleet = RedlockFleet::start().await;
    let addresses: Vec<_> = fleet.servers.iter().map(RedisServer::addr).collect();

    let all_up = middle_latency(bench, &addresses).await;
    add(bench, "1 task: p50 of a cycle", Unit::Nanoseconds, &all_up);
    let busy = cycles(bench, &addresses, 64).await;
    add(bench, "64 tasks: cycles", Unit::PerSecond, &busy);
    hot(bench, &addresses).await;

    let proxy = Proxy::start(addresses[0]);
    proxy.replies().delay(LATE);
    let mut with_proxy = addresses.clone();
    with_proxy[0] = proxy.addr();
    let late = middle_latency(bench, &with_proxy).await;
    against(
        bench,
        "one is 20 ms late, 1 task: p50 of a cycle",
        &late,
        &all_up,
    );

    // Last: a peer that waits for them is left out from then on.
    for server in &mut fleet.servers[3..] {
        server.kill().await;
    }
    let dead = middle_latency(bench, &addresses).await;
    against(
        bench,
        "two are dead, 1 task: p50 of a cycle",
        &dead,
        &all_up,
    );
}

/// The systems that know several servers, as far as they are there.
fn systems(bench: &Bench) -> Vec<System> {
    let peers = [System::Rslock, System::Redlock];
    let there = peers.into_iter().filter(|peer| bench.peers.contains(peer));
    [System::Ours].into_iter().chain(there).collect()
}

/// How a system is given the servers.
fn url(system: System, addresses: &[SocketAddr]) -> String {
    if system == System::Ours {
        return RedlockFleet::url_of(addresses.iter().copied());
    }
    let urls: Vec<_> = addresses.iter().map(|it| format!("redis://{it}")).collect();
    urls.join(",")
}

async fn middle_latency(bench: &mut Bench, addresses: &[SocketAddr]) -> Values {
    measure(bench, addresses, 1, |latencies, _| latencies.quantile(0.5)).await
}

async fn cycles(bench: &mut Bench, addresses: &[SocketAddr], tasks: usize) -> Values {
    let per_second = |latencies: &Sorted, seconds| latencies.count() as f64 / seconds;
    measure(bench, addresses, tasks, per_second).await
}

/// The median of some rounds, in each of which every system has its turn.
async fn measure(
    bench: &mut Bench,
    addresses: &[SocketAddr],
    tasks: usize,
    figure: impl Fn(&Sorted, f64) -> f64,
) -> Values {
    let time = Duration::from_millis(bench.pick(500, 1_000));
    let mut all: BTreeMap<System, Vec<f64>> = BTreeMap::new();
    for _ in 0..bench.pick(1, 3) {
        for system in systems(bench) {
            let spec = Spec::new(system, Work::Free, url(system, addresses)).tasks(tasks);
            let Some(outcome) = bench.attempt(system, fleet::run(spec, time)).await else {
                continue;
            };
            let seconds = outcome.elapsed_ns as f64 / 1e9;
            let latencies: Sorted = outcome.latencies.into_iter().collect();
            all.entry(system)
                .or_default()
                .push(figure(&latencies, seconds));
        }
    }
    let medians = all.into_iter().map(|(system, it)| (system, median(&it)));
    medians.collect()
}

async fn hot(bench: &mut Bench, addresses: &[SocketAddr]) {
    let time = Duration::from_millis(bench.pick(1_500, 4_000));
    let mut all: BTreeMap<System, Hot> = BTreeMap::new();
    for system in systems(bench) {
        let crowd = Crowd::of_ours(PROCESSES, 1, BODY).of(system);
        let url = url(system, addresses);
        let hot = bench.attempt(system, compete_at(&url, crowd, time)).await;
        if let Some(hot) = hot {
            all.insert(system, hot);
        }
    }
    let values = |figure: fn(&Hot) -> f64| -> Values {
        all.iter()
            .map(|(system, hot)| (*system, figure(hot)))
            .collect()
    };
    let fairness = values(|it| it.fairness);
    let bound = Bound::at_least(0.98, fairness[&System::Ours], "");
    let row = row(
        "hot key, 8 processes: Jain's fairness",
        Unit::Plain,
        &fairness,
    );
    bench.report.add(row.bound(bound));
    let wait = values(|it| it.waits.quantile(0.99));
    add(
        bench,
        "hot key, 8 processes: wait, p99",
        Unit::Nanoseconds,
        &wait,
    );
    let sections = values(|it| it.per_second);
    add(
        bench,
        "hot key, 8 processes: sections",
        Unit::PerSecond,
        &sections,
    );
}

/// Trouble with a minority must not be noticed.
fn against(bench: &mut Bench, figure: &str, now: &Values, before: &Values) {
    let ratio = now[&System::Ours] / before[&System::Ours];
    let row = row(figure, Unit::Nanoseconds, now);
    bench
        .report
        .add(row.bound(Bound::at_most(1.5, ratio, " x with all of them")));
}

fn add(bench: &mut Bench, figure: &str, unit: Unit, values: &Values) {
    bench.report.add(row(figure, unit, values));
}

fn row(figure: &str, unit: Unit, values: &Values) -> Row {
    let mut row = Row::new(CASE, figure, unit, values[&System::Ours]);
    for (system, value) in values.iter().filter(|(it, _)| **it != System::Ours) {
        row = row.beside(system, *value);
    }
    row
}

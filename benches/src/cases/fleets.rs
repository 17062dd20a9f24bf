//! Servers that fail over and shard beside one server: cycles, what they cost on both sides, hand-overs, and what it
//! costs that replicas confirm each grant.

use std::time::Duration;

use support::{ClusterFleet, RedisServer, SentinelFleet};

use crate::bench::Bench;
use crate::fleet;
use crate::hot::{Crowd, compete_at};
use crate::report::{Row, Unit};
use crate::server;
use crate::stats::median;
use crate::systems::System;
use crate::worker::{Spec, Work};

const CASE: &str = "servers that fail over and shard";
/// Processes of one task each on the hot key.
const PROCESSES: usize = 8;
const BODY: Duration = Duration::from_millis(1);

/// What is measured with one kind of servers, a value for each round.
#[derive(Debug, Default)]
struct Reached {
    per_second: Vec<f64>,
    /// Processor time of all servers for one cycle, in ns.
    servers: Vec<f64>,
    /// The same of the client.
    client: Vec<f64>,
}

/// The values of one figure.
type Values = fn(&Reached) -> &Vec<f64>;

/// Servers with a name, and how a client reaches them.
struct Endpoint<'a> {
    name: &'static str,
    url: String,
    servers: &'a [RedisServer],
}

pub(super) async fn run(bench: &mut Bench) {
    let one = [bench.server().await];
    let (sentinels, cluster) = (SentinelFleet::start().await, ClusterFleet::start().await);
    let endpoint = |name, url, servers| Endpoint { name, url, servers };
    let (sentinel, sharded) = (sentinels.url(), cluster.url());
    let endpoints = [
        endpoint("one server", one[0].url(), &one[..]),
        endpoint("Sentinel", sentinel.clone(), sentinels.nodes()),
        endpoint(
            "its 2 replicas confirm",
            sentinel + "?replicas=2",
            sentinels.nodes(),
        ),
        endpoint("Cluster", sharded.clone(), cluster.nodes()),
        endpoint(
            "its replicas confirm",
            sharded + "?replicas=1",
            cluster.nodes(),
        ),
    ];
    for tasks in [64, 256] {
        cycles(bench, &endpoints, tasks).await;
    }
    hand_overs(bench, &endpoints).await;
}

async fn cycles(bench: &mut Bench, endpoints: &[Endpoint<'_>], tasks: usize) {
    let time = Duration::from_millis(bench.pick(500, 1_500));
    let mut all: Vec<Reached> = endpoints.iter().map(|_| Reached::default()).collect();
    for _ in 0..bench.pick(1, 3) {
        for (endpoint, reached) in endpoints.iter().zip(&mut all) {
            let before = server::processor_seconds_of(endpoint.servers).await;
            let spec = Spec::new(System::Ours, Work::Free, endpoint.url.clone()).tasks(tasks);
            let outcome = fleet::run(spec, time).await;
            let spent = server::processor_seconds_of(endpoint.servers).await - before;
            let count = outcome.latencies.len() as f64;
            reached
                .per_second
                .push(count / (outcome.elapsed_ns as f64 / 1e9));
            reached.servers.push(spent * 1e9 / count);
            reached.client.push(outcome.cpu_ns as f64 / count);
        }
    }
    let figures: [(&str, Unit, Values); 3] = [
        ("cycles", Unit::PerSecond, |it| &it.per_second),
        ("servers' processors a cycle", Unit::Nanoseconds, |it| {
            &it.servers
        }),
        ("client's processors a cycle", Unit::Nanoseconds, |it| {
            &it.client
        }),
    ];
    for (figure, unit, values) in figures {
        let values: Vec<_> = all.iter().map(|reached| median(values(reached))).collect();
        add(
            bench,
            endpoints,
            &format!("{tasks} tasks: {figure}"),
            unit,
            &values,
        );
    }
}

async fn hand_overs(bench: &mut Bench, endpoints: &[Endpoint<'_>]) {
    let time = Duration::from_millis(bench.pick(1_000, 3_000));
    let crowd = Crowd::of_ours(PROCESSES, 1, BODY);
    let (mut middle, mut slow) = (Vec::new(), Vec::new());
    for endpoint in endpoints {
        let hot = compete_at(&endpoint.url, crowd, time).await;
        middle.push(hot.gaps.quantile(0.5));
        slow.push(hot.gaps.quantile(0.99));
    }
    for (part, values) in [("p50", middle), ("p99", slow)] {
        let figure = format!("release to next entry, {part}");
        add(bench, endpoints, &figure, Unit::Nanoseconds, &values);
    }
}

fn add(bench: &mut Bench, endpoints: &[Endpoint<'_>], figure: &str, unit: Unit, values: &[f64]) {
    let mut row = Row::new(CASE, figure, unit, values[0]);
    for (endpoint, value) in endpoints.iter().zip(values).skip(1) {
        row = row.beside(endpoint.name, *value);
    }
    bench.report.add(row);
}

//! Locks on ZooKeeper and etcd beside the Rust crates that lock there, on the same three servers: cycles with few and many
//! tasks, and a hot key.

use std::time::Duration;

use support::{EtcdCluster, ZooKeeperEnsemble, ZooKeeperTraffic};

use crate::hot::{Crowd, Hot, compete_at};
use crate::report::{Bound, Report, Row, Unit};
use crate::stats::{Sorted, median};
use crate::systems::System;
use crate::worker::{Spec, Work};
use crate::{aged, fleet};

const TEST: &str = "make bench-stores";
const ROUNDS: usize = 5;
const TIME: Duration = Duration::from_secs(3);
/// Of the hot key: so many processes, each with so many tasks.
const CROWD: usize = 8;
const BODY: Duration = Duration::from_millis(1);
/// The length of a tick of `ZooKeeper` in milliseconds, its default.
const TICK: u32 = 2_000;

/// Servers, and who is measured there beside ours.
struct Endpoint<'a> {
    case: &'static str,
    url: String,
    peer: System,
    /// How many times as many cycles as with the other there have to be with 1, 64 and 256 tasks, and sections with a
    /// hot key.
    bounds: [f64; 4],
    /// The servers that count what they are asked.
    counting: Option<&'a ZooKeeperEnsemble>,
}

/// The cycles of one measurement.
struct Cycles {
    latencies: Sorted,
    seconds: f64,
    /// What the servers have counted before and afterwards.
    traffic: Option<[ZooKeeperTraffic; 2]>,
}

/// What a round has measured of ours, and of the other.
type Round<T> = [T; 2];

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(aged: u32, only: Option<&str>) {
    let load_before = crate::load();
    let mut report = Report::default();
    let wanted = |name| only.is_none_or(|only| only == name);
    if wanted("zookeeper") {
        for syncs in [false, true] {
            zookeeper(&mut report, syncs).await;
        }
    }
    if wanted("etcd") {
        etcd(&mut report).await;
    }
    if wanted("aged") {
        aged::measure(&mut report, aged).await;
    }
    let title = format!(
        "{} processors, {}; load average {load_before} before, {} after.",
        crate::cores(),
        std::env::consts::OS,
        crate::load(),
    );
    println!("\n{}", report.markdown(&title));
    crate::bars::draw(&report, &crate::results());
}

async fn zookeeper(report: &mut Report, syncs: bool) {
    let Some(ensemble) = ZooKeeperEnsemble::start_direct(TEST, TICK, syncs).await else {
        return;
    };
    let case = if syncs {
        "ZooKeeper, three servers that wait for the disk"
    } else {
        "ZooKeeper, three servers"
    };
    let endpoint = Endpoint {
        case,
        url: ensemble.url(),
        peer: System::ZooKeeperClient,
        bounds: [0.95, 2.0, 2.0, 1.0],
        counting: Some(&ensemble),
    };
    measure(report, &endpoint).await;
}

async fn etcd(report: &mut Report) {
    if let Some(cluster) = EtcdCluster::start(TEST, 3).await {
        let endpoint = Endpoint {
            case: "etcd, three members",
            url: cluster.url(),
            peer: System::EtcdClient,
            bounds: [0.95, 1.8, 2.3, 1.5],
            counting: None,
        };
        measure(report, &endpoint).await;
    }
}

async fn measure(report: &mut Report, endpoint: &Endpoint<'_>) {
    println!("{}", endpoint.case);
    let [one, some, many, hot] = endpoint.bounds;
    for (tasks, bound) in [(1, one), (64, some), (256, many)] {
        cycles(report, endpoint, tasks, bound).await;
    }
    hand_overs(report, endpoint, hot).await;
}

async fn cycles(report: &mut Report, endpoint: &Endpoint<'_>, tasks: usize, bound: f64) {
    let cycles = async |system| {
        let spec = Spec {
            // Each ends with a confirmed release.
            keys: 1,
            ..Spec::new(system, Work::Free, endpoint.url.clone())
        };
        let before = traffic(endpoint).await;
        let outcome = fleet::run(spec.tasks(tasks), TIME).await;
        Cycles {
            latencies: Sorted::from_iter(outcome.latencies),
            seconds: outcome.elapsed_ns as f64 / 1e9,
            traffic: before.zip(traffic(endpoint).await).map(<[_; 2]>::from),
        }
    };
    let rounds = rounds(endpoint, cycles).await;
    let mut add = |figure: &str, unit, value: &dyn Fn(&Cycles) -> f64| {
        let noun = if tasks == 1 { "task" } else { "tasks" };
        let figure = format!("{tasks} {noun}: {figure}");
        report.add(row(endpoint, &figure, unit, &rounds, bound, value));
    };
    add("cycles", Unit::PerSecond, &|it| {
        it.latencies.count() as f64 / it.seconds
    });
    for part in [0.5, 0.99] {
        let figure = format!("p{} of a cycle", part * 100.0);
        add(&figure, Unit::Nanoseconds, &|it| {
            it.latencies.quantile(part)
        });
    }
    if endpoint.counting.is_some() {
        for (figure, count) in COUNTS {
            add(figure, Unit::Plain, &|it| it.each(count));
        }
    }
}

type Count = fn(&ZooKeeperTraffic) -> u64;

/// What servers count, of one cycle: it does not depend on the load of the machine.
const COUNTS: [(&str, Count); 3] = [
    ("requests a cycle", |it| it.requests),
    ("answers and events a cycle", |it| it.answers),
    ("transactions a cycle", |it| it.changes),
];

async fn traffic(endpoint: &Endpoint<'_>) -> Option<ZooKeeperTraffic> {
    Some(endpoint.counting?.traffic().await)
}

impl Cycles {
    /// How many of these there were in each cycle.
    fn each(&self, count: Count) -> f64 {
        let [before, after] = self.traffic.unwrap_or_default();
        (count(&after) - count(&before)) as f64 / self.latencies.count() as f64
    }
}

async fn hand_overs(report: &mut Report, endpoint: &Endpoint<'_>, bound: f64) {
    let hot = async |system| {
        let crowd = Crowd::of_ours(CROWD, CROWD, BODY).of(system);
        compete_at(&endpoint.url, crowd, TIME).await
    };
    let rounds = rounds(endpoint, hot).await;
    let mut add = |figure: &str, unit, value: fn(&Hot) -> f64| {
        let figure = format!("hot key, {CROWD} processes x {CROWD} tasks: {figure}");
        report.add(row(endpoint, &figure, unit, &rounds, bound, &value));
    };
    add("sections", Unit::PerSecond, |hot| hot.per_second);
    add("release to next entry, p50", Unit::Nanoseconds, |hot| {
        hot.gaps.quantile(0.5)
    });
    add("release to next entry, p99", Unit::Nanoseconds, |hot| {
        hot.gaps.quantile(0.99)
    });
    add("wait, p99", Unit::Nanoseconds, |hot| {
        hot.waits.quantile(0.99)
    });
    add("Jain's fairness over the tasks", Unit::Plain, |hot| {
        hot.fairness
    });
}

/// Measures both in turns, every other round backwards.
async fn rounds<T>(endpoint: &Endpoint<'_>, measure: impl AsyncFn(System) -> T) -> Vec<Round<T>> {
    let mut rounds = Vec::new();
    for number in 0..ROUNDS {
        rounds.push(if number % 2 == 0 {
            let ours = measure(System::Ours).await;
            [ours, measure(endpoint.peer).await]
        } else {
            let theirs = measure(endpoint.peer).await;
            [measure(System::Ours).await, theirs]
        });
    }
    rounds
}

/// The medians of a figure, and that of the ratios within one round.
fn row<T>(
    endpoint: &Endpoint<'_>,
    figure: &str,
    unit: Unit,
    rounds: &[Round<T>],
    bound: f64,
    value: &dyn Fn(&T) -> f64,
) -> Row {
    let middle = |of: &dyn Fn(&Round<T>) -> f64| median(&rounds.iter().map(of).collect::<Vec<_>>());
    let [ours, theirs] = [0, 1].map(|who| middle(&|round| value(&round[who])));
    let ratio = middle(&|[ours, theirs]| value(ours) / value(theirs));
    let row = Row::new(endpoint.case, figure, unit, ours).beside(endpoint.peer, theirs);
    match unit {
        Unit::PerSecond => row.bound(Bound::at_least(bound, ratio, " x the other")),
        Unit::Nanoseconds => row.bound(Bound::at_most(1.0 / bound, ratio, " x the other")),
        _ => row,
    }
}

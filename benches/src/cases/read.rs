//! Many readers and one writer on one key: what sharing gives the readers, and what it takes from the writer.

use std::time::Duration;

use support::RedisServer;

use crate::bench::Bench;
use crate::fleet::Fleet;
use crate::report::{Bound, Row, Unit};
use crate::stats::{Sorted, median};
use crate::systems::System;
use crate::worker::{Outcome, Spec, Work};

const CASE: &str = "one key, 64 readers, 1 writer";
/// Of readers; the writer has one of its own.
const PROCESSES: usize = 8;
const READERS: usize = 8;
const BODY: Duration = Duration::from_millis(1);
/// What the writer does between two writes: it asks again long before a round of exclusive locks is over.
const PAUSE: Duration = Duration::from_millis(10);

/// What one round found.
#[derive(Debug)]
struct Load {
    /// Critical sections of the readers.
    reads_per_second: f64,
    writes_per_second: f64,
    /// From asking to entering, ns.
    writer_waits: Vec<u64>,
}

pub(super) async fn run(bench: &mut Bench) {
    let server = bench.server().await;
    let time = Duration::from_millis(bench.pick(2_000, 3_000));
    let (mut shared, mut exclusive) = (Vec::new(), Vec::new());
    for round in 0..bench.pick(2, 3) {
        let mut turns = [
            (System::OursRead, &mut shared),
            (System::Ours, &mut exclusive),
        ];
        if round % 2 == 1 {
            turns.reverse();
        }
        for (system, loads) in turns {
            loads.push(load(&server, system, time).await);
        }
    }
    let pairs = || shared.iter().zip(&exclusive);
    let more: Vec<_> = pairs()
        .map(|(shared, exclusive)| shared.reads_per_second / exclusive.reads_per_second)
        .collect();
    let mut add = |figure: &str, unit, value: &dyn Fn(&Load) -> f64, bound: Option<Bound>| {
        let middle = |loads: &[Load]| median(&loads.iter().map(value).collect::<Vec<_>>());
        let row = Row::new(CASE, figure, unit, middle(&shared));
        let row = row.beside("as exclusive locks", middle(&exclusive));
        bench.report.add(match bound {
            Some(bound) => row.bound(bound),
            None => row,
        });
    };
    let bound = Bound::at_least(1.0, median(&more), " x exclusive");
    add(
        "reads",
        Unit::PerSecond,
        &|it| it.reads_per_second,
        Some(bound),
    );
    // In the order of the queue the writer waits for those before it, who are done sooner when they share.
    let longer: Vec<_> = pairs()
        .map(|(shared, exclusive)| p99(shared) / p99(exclusive))
        .collect();
    let bound = Bound::at_most(1.0, median(&longer), " x exclusive");
    add(
        "the writer's wait, p99",
        Unit::Nanoseconds,
        &p99,
        Some(bound),
    );
    add("writes", Unit::PerSecond, &|it| it.writes_per_second, None);
}

fn p99(load: &Load) -> f64 {
    let waits: Sorted = load.writer_waits.iter().copied().collect();
    waits.quantile(0.99)
}

/// The writer is exclusive always; the readers are what `system` says.
async fn load(server: &RedisServer, system: System, time: Duration) -> Load {
    let key = support::unique("read");
    let spec = |system, name: String| Spec {
        body_us: BODY.as_micros() as u64,
        threads: 0,
        key: key.clone(),
        name,
        ..Spec::new(system, Work::Hot, server.url())
    };
    let writer = Spec {
        pause_us: PAUSE.as_micros() as u64,
        ..spec(System::Ours, "writer".into())
    };
    let readers = (0..PROCESSES).map(|it| spec(system, format!("readers{it}")).tasks(READERS));
    let mut fleet = Fleet::start([writer].into_iter().chain(readers)).await;
    fleet.go(time).await;
    let outcomes = fleet.stop().await;
    let (writer, readers) = outcomes.split_first().expect("a writer");
    let waits = writer
        .sections
        .iter()
        .flatten()
        .map(|[asked, entered, _]| entered - asked);
    Load {
        reads_per_second: readers.iter().map(sections_per_second).sum(),
        writes_per_second: sections_per_second(writer),
        // One that waits at the end has waited at least so long; at the begin of a pause it has not asked yet.
        writer_waits: waits.chain(writer.unfinished.iter().copied()).collect(),
    }
}

fn sections_per_second(outcome: &Outcome) -> f64 {
    let sections: usize = outcome.sections.iter().map(Vec::len).sum();
    sections as f64 / (outcome.elapsed_ns as f64 / 1e9)
}

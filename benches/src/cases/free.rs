//! Free keys: the cost of one cycle, with processors that sleep in between and with some that do not, and the throughput
//! with many tasks.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::awake::Awake;
use crate::bench::Bench;
use crate::fleet;
use crate::plot::{Chart, Series};
use crate::report::{Bound, Row, Unit};
use crate::stats::{Sorted, median};
use crate::systems::System;
use crate::worker::{Spec, Work};

const CASE: &str = "free keys";

/// The values of each system, one per round.
#[derive(Debug, Default)]
struct Reached {
    /// Median latency in ns.
    p50: Vec<f64>,
    p99: Vec<f64>,
    per_second: Vec<f64>,
}

type All = BTreeMap<System, Reached>;

pub(super) async fn run(bench: &mut Bench) {
    let systems = [System::Ceiling, System::Ours, System::OursDetached];
    let one = measure(bench, "1 task", 1, &systems).await;
    latency(bench, "1 task", &one);
    let awake = Awake::keep();
    let name = "1 task, processors awake";
    let one_awake = measure(bench, name, 1, &systems).await;
    drop(awake);
    latency(bench, name, &one_awake);
    let mut by_tasks = vec![(1, one)];
    for tasks in bench.pick(vec![64, 256], vec![8, 64, 256]) {
        let name = format!("{tasks} tasks");
        let all = measure(bench, &name, tasks, &[System::Ceiling, System::Ours]).await;
        throughput(bench, tasks, &all);
        by_tasks.push((tasks, all));
    }
    plot(bench, &by_tasks);
}

async fn measure(bench: &mut Bench, name: &str, tasks: usize, always: &[System]) -> All {
    let server = bench.server().await;
    let time = Duration::from_millis(bench.pick(500, 700));
    let mut all = All::new();
    for round in 0..bench.pick(3, 5) {
        for system in bench.turn(round, always) {
            let spec = Spec::new(system, Work::Free, server.url()).tasks(tasks);
            let outcome = bench.attempt(system, fleet::run(spec, time)).await;
            let Some(outcome) = outcome else { continue };
            let latencies: Sorted = outcome.latencies.into_iter().collect();
            let reached = all.entry(system).or_default();
            reached.p50.push(latencies.quantile(0.5));
            reached.p99.push(latencies.quantile(0.99));
            let seconds = outcome.elapsed_ns as f64 / 1e9;
            reached.per_second.push(latencies.count() as f64 / seconds);
        }
    }
    for (system, reached) in &all {
        let name = |what| format!("free keys, {name}, {what}, {system}");
        bench.report.keep(name("p50 ns"), reached.p50.clone());
        bench.report.keep(name("p99 ns"), reached.p99.clone());
        bench
            .report
            .keep(name("cycles a second"), reached.per_second.clone());
    }
    all
}

fn latency(bench: &mut Bench, name: &str, all: &All) {
    let p50 = |reached: &Reached| reached.p50.clone();
    let ratio = |system| ratio(all, system, System::Ceiling, p50);
    bench.report.add(
        row(
            all,
            &format!("{name}: p50 of a cycle"),
            Unit::Nanoseconds,
            System::Ours,
            p50,
        )
        .bound(Bound::at_most(1.35, ratio(System::Ours), " x ceiling")),
    );
    bench.report.add(row(
        all,
        &format!("{name}: p99 of a cycle"),
        Unit::Nanoseconds,
        System::Ours,
        |it| it.p99.clone(),
    ));
    bench.report.add(
        row(
            all,
            &format!("{name}: p50 around the body, release detached"),
            Unit::Nanoseconds,
            System::OursDetached,
            p50,
        )
        .bound(Bound::at_most(
            0.7,
            ratio(System::OursDetached),
            " x ceiling's cycle",
        )),
    );
}

fn throughput(bench: &mut Bench, tasks: usize, all: &All) {
    let rate = |reached: &Reached| reached.per_second.clone();
    let ceiling = ratio(all, System::Ours, System::Ceiling, rate);
    let figure = format!("{tasks} tasks: cycles");
    let mut figures = row(all, &figure, Unit::PerSecond, System::Ours, rate);
    if tasks >= 64 {
        figures = figures.bound(Bound::at_least(0.85, ceiling, " x ceiling"));
    }
    bench.report.add(figures);
    if tasks == 256 {
        let ahead = bench
            .peers
            .iter()
            .map(|peer| ratio(all, System::Ours, *peer, rate));
        let ahead = ahead.fold(f64::INFINITY, f64::min);
        bench.report.add(
            Row::new(
                CASE,
                "256 tasks: ours over the fastest peer",
                Unit::Plain,
                ahead,
            )
            .bound(Bound::at_least(1.0, ahead, " x")),
        );
    }
}

/// The medians of one kind of figure.
fn row(
    all: &All,
    figure: &str,
    unit: Unit,
    ours: System,
    values: impl Fn(&Reached) -> Vec<f64>,
) -> Row {
    let middle = |system| median(&values(&all[&system]));
    let mut row = Row::new(CASE, figure, unit, middle(ours));
    for system in all
        .keys()
        .filter(|it| !matches!(it, System::Ours | System::OursDetached))
    {
        row = row.beside(system, middle(*system));
    }
    row
}

/// The median of the ratios of the same round.
fn ratio(all: &All, over: System, under: System, values: impl Fn(&Reached) -> Vec<f64>) -> f64 {
    let pairs = values(&all[&over]).into_iter().zip(values(&all[&under]));
    median(&pairs.map(|(over, under)| over / under).collect::<Vec<_>>())
}

fn plot(bench: &Bench, by_tasks: &[(usize, All)]) {
    let systems = by_tasks[0]
        .1
        .keys()
        .filter(|it| **it != System::OursDetached);
    let line = |system: &System| {
        let points = by_tasks
            .iter()
            .map(|(tasks, all)| (*tasks as f64, median(&all[system].per_second)));
        Series {
            name: system.to_string(),
            color: system.color(),
            points: points.collect(),
        }
    };
    bench.plot(
        "throughput",
        &Chart {
            title: "Free keys: more tasks at once",
            x: "tasks of one process",
            y: "cycles a second",
            parts: false,
            series: systems.map(line).collect(),
        },
    );
}

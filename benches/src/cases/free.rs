//! Free keys: the cost of one cycle, with processors that sleep in between and with some that do not, and the throughput
//! with many tasks of one process and of several.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::awake::Awake;
use crate::bench::Bench;
use crate::fleet;
use crate::plot::{Chart, Series};
use crate::report::{Bound, Row, Unit};
use crate::stats::{Sorted, median};
use crate::systems::System;
use crate::worker::{Outcome, Spec, Work};

const CASE: &str = "free keys";

/// The values of each system, one per round.
#[derive(Debug, Default)]
struct Reached {
    /// Median latency in ns.
    p50: Vec<f64>,
    p99: Vec<f64>,
    per_second: Vec<f64>,
    /// Of all clients for one cycle: processor time in ns, and how often their threads left a processor.
    processor: Vec<f64>,
    switches: Vec<f64>,
}

/// The clients.
#[derive(Clone, Copy)]
struct Clients {
    processes: usize,
    /// Of each process.
    tasks: usize,
    /// The least part of the ceiling's cycles.
    least: Option<f64>,
}

impl Clients {
    fn one_process(tasks: usize, least: Option<f64>) -> Self {
        Self {
            processes: 1,
            tasks,
            least,
        }
    }

    fn several(processes: usize, tasks: usize, least: Option<f64>) -> Self {
        Self {
            processes,
            tasks,
            least,
        }
    }

    fn specs(self, system: System, url: &str) -> impl Iterator<Item = Spec> {
        let spec = move |process| Spec {
            name: format!("process{process}"),
            // Many processes: as small as they can be.
            threads: if self.processes > 2 { 0 } else { 2 },
            ..Spec::new(system, Work::Free, url.to_owned()).tasks(self.tasks)
        };
        (0..self.processes).map(spec)
    }
}

impl fmt::Display for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.processes, self.tasks) {
            (1, 1) => f.write_str("1 task"),
            (1, tasks) => write!(f, "{tasks} tasks"),
            (processes, tasks) => write!(f, "{processes} processes x {tasks} tasks"),
        }
    }
}

type All = BTreeMap<System, Reached>;

pub(super) async fn run(bench: &mut Bench) {
    let systems = [System::Ceiling, System::Ours, System::OursDetached];
    let one_task = Clients::one_process(1, None);
    let one = measure(bench, "1 task", one_task, &systems).await;
    latency(bench, "1 task", &one);
    let awake = Awake::keep();
    let name = "1 task, processors awake";
    let one_awake = measure(bench, name, one_task, &systems).await;
    drop(awake);
    latency(bench, name, &one_awake);
    let mut by_tasks = vec![(1, one)];
    let few = Clients::one_process(8, None);
    let many =
        [(64, 1.0), (256, 1.1)].map(|(tasks, least)| Clients::one_process(tasks, Some(least)));
    for clients in bench.pick(None, Some(few)).into_iter().chain(many) {
        let all = throughput(bench, clients).await;
        by_tasks.push((clients.tasks, all));
    }
    for clients in [
        Clients::several(2, 32, Some(0.95)),
        Clients::several(8, 8, None),
    ] {
        throughput(bench, clients).await;
    }
    plot(bench, &by_tasks);
}

async fn measure(bench: &mut Bench, name: &str, clients: Clients, always: &[System]) -> All {
    let server = bench.server().await;
    let time = Duration::from_millis(bench.pick(500, 700));
    let mut all = All::new();
    for round in 0..bench.pick(3, 5) {
        for system in bench.turn(round, always) {
            let url = server.url();
            let specs = clients.specs(system, &url);
            let outcomes = bench.attempt(system, fleet::run_all(specs, time)).await;
            if let Some(outcomes) = outcomes {
                all.entry(system).or_default().add(outcomes);
            }
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

impl Reached {
    /// What the processes of one round have measured at the same time.
    fn add(&mut self, outcomes: Vec<Outcome>) {
        let seconds = outcomes
            .first()
            .map_or(f64::NAN, |it| it.elapsed_ns as f64 / 1e9);
        let sum = |value: fn(&Outcome) -> u64| outcomes.iter().map(value).sum::<u64>() as f64;
        let processor = sum(|it| it.cpu_ns);
        let switches = outcomes.iter().map(|it| it.switches).sum::<Option<u64>>();
        let switches = switches.map_or(f64::NAN, |it| it as f64);
        let latencies: Sorted = outcomes.into_iter().flat_map(|it| it.latencies).collect();
        let cycles = latencies.count() as f64;
        self.p50.push(latencies.quantile(0.5));
        self.p99.push(latencies.quantile(0.99));
        self.per_second.push(cycles / seconds);
        self.processor.push(processor / cycles);
        self.switches.push(switches / cycles);
    }
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

async fn throughput(bench: &mut Bench, clients: Clients) -> All {
    let name = clients.to_string();
    let all = measure(bench, &name, clients, &[System::Ceiling, System::Ours]).await;
    let rate = |reached: &Reached| reached.per_second.clone();
    let ceiling = ratio(&all, System::Ours, System::Ceiling, rate);
    let figure = format!("{name}: cycles");
    let mut figures = row(&all, &figure, Unit::PerSecond, System::Ours, rate);
    if let Some(least) = clients.least {
        figures = figures.bound(Bound::at_least(least, ceiling, " x ceiling"));
    }
    bench.report.add(figures);
    let figure = format!("{name}: clients' processors a cycle");
    let processor = |it: &Reached| it.processor.clone();
    let figures = row(&all, &figure, Unit::Nanoseconds, System::Ours, processor);
    bench.report.add(figures);
    let figure = format!("{name}: clients' context switches a cycle");
    let switches = |it: &Reached| it.switches.clone();
    let figures = row(&all, &figure, Unit::Plain, System::Ours, switches);
    bench.report.add(figures);
    if clients.tasks == 256 {
        let ahead = bench
            .peers
            .iter()
            .map(|peer| ratio(&all, System::Ours, *peer, rate));
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
    all
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

//! A hot key, 8 processes of 8 tasks each: what a hand-off costs, how long it takes, and whether turns are fair.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::bench::Bench;
use crate::hot::{Crowd, Hot, compete, round_trip};
use crate::plot::{Chart, Series};
use crate::report::{Bound, Row, Unit};
use crate::stats::{Sorted, median};
use crate::systems::System;

const CASE: &str = "hot key, 8 processes x 8 tasks";
const PROCESSES: usize = 8;
const TASKS: usize = 8;
const BODY: Duration = Duration::from_millis(1);
/// How many points of a distribution are drawn.
const POINTS: usize = 200;

/// A round, with what a bare round trip took in it.
#[derive(Debug)]
struct Round {
    hot: Hot,
    round_trip: f64,
}

impl Round {
    /// Scripts a critical section; with the commands of those that take locks without one.
    fn commands(&self, system: System) -> f64 {
        self.hot.each(self.hot.server.commands(system))
    }

    /// How long everybody waits where turns are perfect: for all others' bodies and a round trip for each.
    fn ideal_wait(&self) -> f64 {
        (PROCESSES * TASKS) as f64 * (self.hot.bodies.quantile(0.5) + self.round_trip)
    }
}

type All = BTreeMap<System, Vec<Round>>;

pub(super) async fn run(bench: &mut Bench) {
    let server = bench.server().await;
    let time = Duration::from_millis(bench.pick(2_000, 3_000));
    let mut all = All::new();
    for number in 0..bench.pick(2, 3) {
        for system in bench.turn(number, &[System::Ours, System::OursAlone]) {
            let round_trip = round_trip(&server, BODY, time / 8).await;
            let crowd = Crowd::of_ours(PROCESSES, TASKS, BODY).of(system);
            let hot = bench.attempt(system, compete(&server, crowd, time)).await;
            let Some(hot) = hot else { continue };
            all.entry(system)
                .or_default()
                .push(Round { hot, round_trip });
        }
    }
    figures(bench, &all);
    plot(bench, &all);
}

fn figures(bench: &mut Bench, all: &All) {
    let ours = |value: &dyn Fn(&Round) -> f64| middle(all, System::Ours, value);
    let commands = ours(&|it| it.commands(System::Ours));
    bench.report.add(
        row(
            all,
            "scripts a critical section (peers: commands)",
            Unit::Plain,
            Round::commands,
        )
        .bound(Bound::at_most(1.3, commands, "")),
    );
    bench.report.add(row(
        all,
        "pushes a critical section",
        Unit::Plain,
        |it, _| it.hot.each(it.hot.server.pushes),
    ));
    let fairness = ours(&|it| it.hot.fairness);
    bench.report.add(
        row(
            all,
            "Jain's fairness over the tasks",
            Unit::Plain,
            |it, _| it.hot.fairness,
        )
        .bound(Bound::at_least(0.99, fairness, "")),
    );
    let middle = ours(&|it| it.hot.gaps.quantile(0.5) / it.round_trip);
    let slow = |round: &Round| round.hot.gaps.quantile(0.99);
    let rounds = all[&System::Ours].iter().zip(&all[&System::OursAlone]);
    let slow: Vec<_> = rounds.map(|(it, alone)| slow(it) / slow(alone)).collect();
    for (part, bound) in [
        (0.5, Bound::at_most(1.3, middle, " bare round trips")),
        (0.99, Bound::at_most(1.0, median(&slow), " x granted alone")),
    ] {
        let figure = format!("release to next entry, p{}", part * 100.0);
        let value = |round: &Round, _| round.hot.gaps.quantile(part);
        bench
            .report
            .add(row(all, &figure, Unit::Nanoseconds, value).bound(bound));
    }
    let ratio = ours(&|it| it.hot.waits.quantile(0.99) / it.ideal_wait());
    bench.report.add(
        row(all, "wait, p99", Unit::Nanoseconds, |it, _| {
            it.hot.waits.quantile(0.99)
        })
        .bound(Bound::at_most(1.05, ratio, " x round robin")),
    );
    bench
        .report
        .add(row(all, "critical sections", Unit::PerSecond, |it, _| {
            it.hot.per_second
        }));
    let round_trip = ours(&|it| it.round_trip);
    bench.report.add(Row::new(
        CASE,
        "a bare round trip",
        Unit::Nanoseconds,
        round_trip,
    ));
}

fn middle(all: &All, system: System, value: &dyn Fn(&Round) -> f64) -> f64 {
    median(&all[&system].iter().map(value).collect::<Vec<_>>())
}

fn row(all: &All, figure: &str, unit: Unit, value: impl Fn(&Round, System) -> f64) -> Row {
    let middle = |system| middle(all, system, &|round| value(round, system));
    let mut row = Row::new(CASE, figure, unit, middle(System::Ours));
    for system in all.keys().filter(|it| **it != System::Ours) {
        row = row.beside(system, middle(*system));
    }
    row
}

fn plot(bench: &Bench, all: &All) {
    let lines = |values: fn(&Hot) -> &Sorted| -> Vec<Series> {
        let points = |rounds: &[Round]| values(&rounds[0].hot).points(POINTS);
        let line = |(system, rounds): (&System, &Vec<Round>)| {
            let in_ms = points(rounds)
                .into_iter()
                .map(|(ns, part)| (ns / 1e6, part));
            Series {
                name: system.to_string(),
                color: system.color(),
                points: in_ms.collect(),
            }
        };
        let drawn = all.iter().filter(|(it, _)| **it != System::OursAlone);
        drawn.map(line).collect()
    };
    for (name, title, x, series) in [
        (
            "handoff",
            "Hot key, 8 processes x 8 tasks: hand-offs",
            "ms from a release to the next entry",
            lines(|it| &it.gaps),
        ),
        (
            "wait",
            "Hot key, 8 processes x 8 tasks: waiting",
            "ms from asking to entering",
            lines(|it| &it.waits),
        ),
    ] {
        let y = "part of all that took at most so long";
        bench.plot(
            name,
            &Chart {
                title,
                x,
                y,
                parts: true,
                series,
            },
        );
    }
}

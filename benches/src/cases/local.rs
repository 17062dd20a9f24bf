//! A hot key within one process, 16 and 64 tasks with empty bodies: hand-overs a second against the serial limit.

use std::time::Duration;

use crate::bench::Bench;
use crate::hot::{Crowd, Hot, compete, round_trip};
use crate::report::{Bound, Row, Unit};
use crate::stats::median;
use crate::systems::System;

const TASKS: [usize; 2] = [16, 64];

/// A round, with what a bare round trip took in it, in ns.
struct Round {
    ours: Hot,
    alone: Hot,
    bare: f64,
}

pub(super) async fn run(bench: &mut Bench) {
    for tasks in TASKS {
        measure(bench, tasks).await;
    }
}

async fn measure(bench: &mut Bench, tasks: usize) {
    let server = bench.server().await;
    let time = Duration::from_millis(bench.pick(700, 1_500));
    let crowd = Crowd::of_ours(1, tasks, Duration::ZERO);
    let mut rounds = Vec::new();
    for _ in 0..bench.pick(3, 5) {
        rounds.push(Round {
            bare: round_trip(&server, Duration::ZERO, time / 2).await,
            ours: compete(&server, crowd, time).await,
            alone: compete(&server, crowd.of(System::OursAlone), time).await,
        });
    }
    report(bench, tasks, &rounds);
}

fn report(bench: &mut Bench, tasks: usize, rounds: &[Round]) {
    let case = format!("hot key, 1 process x {tasks} tasks");
    let all = |value: &dyn Fn(&Round) -> f64| rounds.iter().map(value).collect::<Vec<_>>();
    let row = |figure: &str, unit, value: &dyn Fn(&Hot) -> f64| {
        Row::new(&case, figure, unit, median(&all(&|it| value(&it.ours))))
            .beside(System::OursAlone, median(&all(&|it| value(&it.alone))))
    };
    let limit = |round: &Round| 1e9 / round.bare;
    let times = median(&all(&|it| it.ours.per_second / limit(it)));
    bench.report.add(
        row("hand-overs", Unit::PerSecond, &|it| it.per_second)
            .beside("one bare round trip each", median(&all(&limit)))
            .bound(Bound::at_least(1.5, times, " x serial limit")),
    );
    let trips = median(&all(&|it| it.ours.gaps.quantile(0.5) / it.bare));
    bench.report.add(
        row("release to next entry, p50", Unit::Nanoseconds, &|it| {
            it.gaps.quantile(0.5)
        })
        .bound(Bound::at_most(0.2, trips, " bare round trips")),
    );
    bench.report.add(row(
        "release to next entry, p99",
        Unit::Nanoseconds,
        &|it| it.gaps.quantile(0.99),
    ));
    bench
        .report
        .add(row("scripts a hand-over", Unit::Plain, &|it| {
            it.each(it.server.scripts)
        }));
    bench.report.keep(
        format!("{case}, hand-overs a second"),
        all(&|it| it.ours.per_second),
    );
    bench
        .report
        .keep(format!("{case}, serial limit"), all(&limit));
}

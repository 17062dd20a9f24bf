//! A hot key within one process, 64 tasks with empty bodies: hand-overs a second against the serial limit.

use std::time::Duration;

use crate::bench::Bench;
use crate::hot::{Crowd, Hot, compete, round_trip};
use crate::report::{Bound, Row, Unit};
use crate::stats::median;
use crate::systems::System;

const CASE: &str = "hot key, 1 process x 64 tasks";

/// A round, with what a bare round trip took in it, in ns.
struct Round {
    ours: Hot,
    alone: Hot,
    round_trip: f64,
}

pub(super) async fn run(bench: &mut Bench) {
    let server = bench.server().await;
    let time = Duration::from_millis(bench.pick(700, 1_500));
    let crowd = Crowd::of_ours(1, 64, Duration::ZERO);
    let mut rounds = Vec::new();
    for _ in 0..bench.pick(3, 5) {
        rounds.push(Round {
            round_trip: round_trip(&server, Duration::ZERO, time / 2).await,
            ours: compete(&server, crowd, time).await,
            alone: compete(&server, crowd.of(System::OursAlone), time).await,
        });
    }
    report(bench, &rounds);
}

fn report(bench: &mut Bench, rounds: &[Round]) {
    let all = |value: &dyn Fn(&Round) -> f64| rounds.iter().map(value).collect::<Vec<_>>();
    let row = |figure: &str, unit, value: &dyn Fn(&Hot) -> f64| {
        Row::new(CASE, figure, unit, median(&all(&|it| value(&it.ours))))
            .beside(System::OursAlone, median(&all(&|it| value(&it.alone))))
    };
    let limit = |round: &Round| 1e9 / round.round_trip;
    let times = median(&all(&|it| it.ours.per_second / limit(it)));
    bench.report.add(
        row("hand-overs", Unit::PerSecond, &|it| it.per_second)
            .beside("one bare round trip each", median(&all(&limit)))
            .bound(Bound::at_least(1.5, times, " x serial limit")),
    );
    let trips = median(&all(&|it| it.ours.gaps.quantile(0.5) / it.round_trip));
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
        "hot key in one process, hand-overs a second",
        all(&|it| it.ours.per_second),
    );
    bench
        .report
        .keep("hot key in one process, serial limit", all(&limit));
}

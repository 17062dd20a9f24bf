//! A hot key within one process, 64 tasks with empty bodies: hand-offs a second against the serial limit.

use std::time::Duration;

use crate::bench::Bench;
use crate::hot::{Crowd, compete, round_trip};
use crate::report::{Bound, Row, Unit};
use crate::stats::median;
use crate::systems::System;

const CASE: &str = "hot key, 1 process x 64 tasks";

pub(super) async fn run(bench: &mut Bench) {
    let server = bench.server().await;
    let time = Duration::from_millis(bench.pick(700, 1_500));
    let crowd = Crowd {
        system: System::Ours,
        processes: 1,
        tasks: 64,
        body: Duration::ZERO,
    };
    let (mut rates, mut limits) = (Vec::new(), Vec::new());
    for _ in 0..bench.pick(3, 5) {
        limits.push(1e9 / round_trip(&server, Duration::ZERO, time / 2).await);
        rates.push(compete(&server, crowd, time).await.per_second);
    }
    let ratios: Vec<_> = rates
        .iter()
        .zip(&limits)
        .map(|(rate, limit)| rate / limit)
        .collect();
    bench.report.add(
        Row::new(CASE, "hand-offs", Unit::PerSecond, median(&rates))
            .beside("one bare round trip each", median(&limits))
            .bound(Bound::at_least(0.8, median(&ratios), " x serial limit")),
    );
    bench
        .report
        .keep("hot key in one process, hand-offs a second", rates);
    bench
        .report
        .keep("hot key in one process, serial limit", limits);
}

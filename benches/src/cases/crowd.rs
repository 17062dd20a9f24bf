//! A hot key with 10 and with 100 waiting processes: the cost of a hand-off must not depend on the number of waiters.

use std::time::Duration;

use crate::bench::Bench;
use crate::hot::{Crowd, Hot, compete};
use crate::report::{Bound, Row, Unit};
use crate::stats::median;
use crate::systems::System;

const CASE: &str = "hot key, 100 processes x 1 task";
const FEW: usize = 10;
const MANY: usize = 100;
const BODY: Duration = Duration::from_millis(1);
/// The largest tolerated ratio.
const TOLERANCE: f64 = 1.1;

/// A figure of one measurement.
type Value = fn(&Hot) -> f64;

pub(super) async fn run(bench: &mut Bench) {
    let server = bench.server().await;
    let time = Duration::from_millis(bench.pick(2_000, 3_000));
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for _ in 0..bench.pick(1, 3) {
        for (processes, rounds) in [(FEW, &mut few), (MANY, &mut many)] {
            let crowd = Crowd {
                system: System::Ours,
                processes,
                tasks: 1,
                body: BODY,
            };
            rounds.push(compete(&server, crowd, time).await);
        }
    }
    let kinds: [(&str, Value); 2] = [
        ("scripts a hand-off", |it| it.each(it.server.scripts)),
        ("pushes a hand-off", |it| it.each(it.server.pushes)),
    ];
    for (figure, value) in kinds {
        let middle = |rounds: &[Hot]| median(&rounds.iter().map(value).collect::<Vec<_>>());
        let (few, many) = (middle(&few), middle(&many));
        bench.report.add(
            Row::new(CASE, figure, Unit::Plain, many)
                .beside("10 processes", few)
                .bound(Bound::at_most(TOLERANCE, many / few, " x that of 10")),
        );
    }
}

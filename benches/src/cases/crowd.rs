//! A hot key with many processes of one task each: the cost of a hand-over must not depend on the number of waiters, and
//! chains, of which these processes have no use, must cost them nothing.

use std::time::Duration;

use crate::awake::Awake;
use crate::bench::Bench;
use crate::hot::{Crowd, Hot, compete, round_trip};
use crate::report::{Bound, Row, Unit};
use crate::stats::median;

const CASE: &str = "hot key, 100 processes x 1 task";
const FEW: usize = 10;
const MANY: usize = 100;
const BODY: Duration = Duration::from_millis(1);
/// The largest tolerated ratio.
const TOLERANCE: f64 = 1.1;

const EMPTY: &str = "hot key, 30 processes x 1 task, empty bodies";
const PROCESSES: usize = 30;
/// Bare round trips in the time of one section, before there were chains.
const BEFORE: f64 = 12.0;

/// A figure of one measurement.
type Value = fn(&Hot) -> f64;

pub(super) async fn run(bench: &mut Bench) {
    many(bench).await;
    empty(bench).await;
}

async fn many(bench: &mut Bench) {
    let server = bench.server().await;
    let time = Duration::from_millis(bench.pick(2_000, 3_000));
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for _ in 0..bench.pick(1, 3) {
        for (processes, rounds) in [(FEW, &mut few), (MANY, &mut many)] {
            let crowd = Crowd::of_ours(processes, 1, BODY);
            rounds.push(compete(&server, crowd, time).await);
        }
    }
    let kinds: [(&str, Value); 2] = [
        ("scripts a hand-over", |it| it.each(it.server.scripts)),
        ("pushes a hand-over", |it| it.each(it.server.pushes)),
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

async fn empty(bench: &mut Bench) {
    let server = bench.server().await;
    let time = Duration::from_millis(bench.pick(1_000, 1_500));
    let crowd = Crowd::of_ours(PROCESSES, 1, Duration::ZERO);
    let (mut rates, mut trips) = (Vec::new(), Vec::new());
    for _ in 0..bench.pick(3, 5) {
        // So many processes leave the processors no time to sleep.
        let awake = Awake::keep();
        let trip = round_trip(&server, Duration::ZERO, time / 4).await;
        drop(awake);
        let hot = compete(&server, crowd, time).await;
        rates.push(hot.per_second);
        trips.push(1e9 / hot.per_second / trip);
    }
    bench.report.add(
        Row::new(EMPTY, "critical sections", Unit::PerSecond, median(&rates)).bound(
            Bound::at_most(BEFORE, median(&trips), " bare round trips each"),
        ),
    );
}

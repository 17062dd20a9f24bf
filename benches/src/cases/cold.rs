//! Cold start: the round trips from start to the first lock, through a network that is slow on purpose.

use std::time::Duration;

use support::Proxy;

use crate::bench::Bench;
use crate::fleet;
use crate::report::{Row, Unit};
use crate::stats::median;
use crate::systems::System;
use crate::worker::{Spec, Work};

/// The delay in each direction, long enough that computation does not count.
const DELAY: Duration = Duration::from_millis(20);
/// Within this, every system has its first lock.
const ENOUGH: Duration = Duration::from_millis(600);

pub(super) async fn run(bench: &mut Bench) {
    let server = bench.server().await;
    let proxy = Proxy::start(server.addr());
    proxy.requests().delay(DELAY);
    proxy.replies().delay(DELAY);
    let mut figures = Vec::new();
    for system in bench.turn(0, &[System::Ours, System::Ceiling]) {
        let mut trips = Vec::new();
        for _ in 0..bench.pick(1, 3) {
            // No script is loaded yet.
            server.cmd(&["SCRIPT", "FLUSH"]).await;
            let spec = Spec::new(system, Work::Cold, proxy.url());
            let outcome = bench.attempt(system, fleet::run(spec, ENOUGH)).await;
            let Some(outcome) = outcome else { continue };
            let took = outcome.latencies[0] as f64;
            trips.push((took / (2.0 * DELAY.as_nanos() as f64)).floor());
        }
        figures.push((system, median(&trips)));
    }
    let figure = "round trips from connect to the first lock";
    let mut row = Row::new("cold start", figure, Unit::Plain, figures[0].1);
    for (system, trips) in &figures[1..] {
        row = row.beside(system, *trips);
    }
    bench.report.add(row);
}

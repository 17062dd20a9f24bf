//! Ten thousand locks held at once: none is lost, even while the caller's runtime stands still.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::bench::Bench;
use crate::fleet::Hand;
use crate::report::{Bound, Row, Unit};
use crate::server;
use crate::systems::System;
use crate::worker::{Sample, Spec, Work};

const CASE: &str = "10,000 held locks, ttl 3 s";
const COUNT: usize = 10_000;

pub(super) async fn run(bench: &mut Bench) {
    let server = bench.server().await;
    let spec = Spec {
        ttl_ms: 3_000,
        ..Spec::new(System::Ours, Work::Held, server.url())
    };
    let mut hand = Hand::start(&Spec { threads: 0, ..spec }).await;
    let taken: usize = hand.ask(&format!("take {COUNT}")).await;
    assert_eq!(taken, COUNT);

    server::reset(&server).await;
    let before: Sample = hand.ask("sample").await;
    let started = Instant::now();
    sleep(Duration::from_secs(bench.pick(10, 60))).await;
    let after: Sample = hand.ask("sample").await;
    let seconds = started.elapsed().as_secs_f64();
    let renewals = server::statistics(&server).await.scripts;

    let blocked = bench.pick(4_000, 9_000);
    let _: String = hand.ask(&format!("block {blocked}")).await;
    let end: Sample = hand.ask("sample").await;
    // Beside the locks, the server has the counter of the fences, and a note of each grant, which renewals write.
    let notes = server::keys_like(&server, "*:n:*").await;
    let on_server = server::keys(&server).await.saturating_sub(1 + notes);

    let mut add = |figure: &str, unit, value, bound| {
        let row = Row::new(CASE, figure, unit, value);
        bench.report.add(match bound {
            Some(bound) => row.bound(bound),
            None => row,
        });
    };
    let none = |lost: f64| Some(Bound::at_most(0.0, lost, " lost"));
    let lost = after.lost as f64;
    add(
        &format!("lost in {seconds:.0} s"),
        Unit::Plain,
        lost,
        none(lost),
    );
    let lost = end.lost as f64;
    let figure = format!(
        "lost while the runtime stood still for {} s",
        blocked / 1000
    );
    add(&figure, Unit::Plain, lost, none(lost));
    let gone = COUNT as f64 - on_server as f64;
    add("gone from the server", Unit::Plain, gone, none(gone));
    let driver = (after.driver_ns - before.driver_ns) as f64 / 1e9 / seconds;
    add(
        "processor of the driver's thread",
        Unit::Percent,
        driver,
        None,
    );
    add(
        "renewal commands",
        Unit::PerSecond,
        renewals / seconds,
        None,
    );
    let memory = before.heap_bytes as f64 / COUNT as f64;
    let bound = Bound::at_most(1024.0, memory, " B");
    add("client heap a held lock", Unit::Bytes, memory, Some(bound));
}

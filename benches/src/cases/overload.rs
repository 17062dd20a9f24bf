//! One lock with a limited queue, of which ten times as much is asked as it can serve: the lock stays as busy as without
//! the overload, who waits does not wait long, and a refusal costs one script.

use std::time::Duration;

use support::RedisServer;

use crate::bench::Bench;
use crate::fleet::Fleet;
use crate::hot::{Crowd, Hot, compete, judge};
use crate::report::{Bound, Row, Unit};
use crate::server;
use crate::stats::median;
use crate::systems::System;
use crate::worker::{MOST_WAITERS, Spec, Work};

const CASE: &str = "ten times the load of a lock, at most 8 waiters";
const PROCESSES: usize = 3;
/// Long beside a hand-over, so that a wait is made of bodies.
const BODY: Duration = Duration::from_millis(20);
/// Of all processes together, in the mean.
const GAP: Duration = Duration::from_millis(2);

/// Both in one round.
struct Round {
    over: Hot,
    refused: f64,
    /// As many tasks as fill the queue.
    busy: Hot,
}

pub(super) async fn run(bench: &mut Bench) {
    let server = bench.server().await;
    let time = Duration::from_millis(bench.pick(4_000, 10_000));
    let tasks = (MOST_WAITERS as usize + 1) / PROCESSES;
    // Limited queues form no chains.
    let crowd = Crowd::of_ours(PROCESSES, tasks, BODY).of(System::OursAlone);
    let mut rounds = Vec::new();
    for _ in 0..bench.pick(2, 5) {
        let busy = compete(&server, crowd, time).await;
        let (over, refused) = offer(&server, time).await;
        rounds.push(Round {
            over,
            refused,
            busy,
        });
    }
    report(bench, &rounds);
}

/// Lets requests come for some time; how many were refused.
async fn offer(server: &RedisServer, time: Duration) -> (Hot, f64) {
    let key = support::unique("overload");
    let spec = |process| Spec {
        body_us: BODY.as_micros() as u64,
        pause_us: (GAP * PROCESSES as u32).as_micros() as u64,
        threads: 0,
        key: key.clone(),
        name: format!("process{process}"),
        ..Spec::new(System::Ours, Work::Offered, server.url())
    };
    let mut fleet = Fleet::start((0..PROCESSES).map(spec)).await;
    server::reset(server).await;
    fleet.go(time).await;
    let statistics = server::statistics(server).await;
    let outcomes = fleet.stop().await;
    let refused = outcomes.iter().map(|it| it.refused as f64).sum();
    (judge(&outcomes, statistics), refused)
}

fn report(bench: &mut Bench, rounds: &[Round]) {
    let middle =
        |value: &dyn Fn(&Round) -> f64| median(&rounds.iter().map(value).collect::<Vec<_>>());
    let busy = middle(&|it| it.over.per_second / it.busy.per_second);
    let sections = Row::new(
        CASE,
        "critical sections",
        Unit::PerSecond,
        middle(&|it| it.over.per_second),
    );
    bench.report.add(
        sections
            .beside("without overload", middle(&|it| it.busy.per_second))
            .bound(Bound::at_least(0.95, busy, " x without overload")),
    );
    let all_bodies = |it: &Round| f64::from(MOST_WAITERS) * it.over.bodies.quantile(0.5);
    let wait = middle(&|it| it.over.waits.quantile(0.99) / all_bodies(it));
    bench.report.add(
        Row::new(
            CASE,
            "wait, p99",
            Unit::Nanoseconds,
            middle(&|it| it.over.waits.quantile(0.99)),
        )
        .beside("8 bodies", middle(&all_bodies))
        .bound(Bound::at_most(1.05, wait, " x 8 bodies")),
    );
    let offered = middle(&|it| (it.refused + it.over.sections) / it.over.sections);
    bench
        .report
        .add(Row::new(CASE, "requests a section", Unit::Plain, offered));
    let of_sections = |it: &Round| it.over.sections * it.busy.each(it.busy.server.scripts);
    let scripts = middle(&|it| (it.over.server.scripts - of_sections(it)) / it.refused);
    bench.report.add(
        Row::new(CASE, "scripts a refusal", Unit::Plain, scripts)
            .bound(Bound::at_most(1.05, scripts, "")),
    );
}

//! Free keys with few and many tasks.

use std::time::Duration;

use super::database::Database;
use super::rounds::Rounds;
use crate::fleet::Fleet;
use crate::report::{Bound, Report, Unit};
use crate::stats::Sorted;
use crate::systems::System;
use crate::worker::{Spec, Work};

const TIME: Duration = Duration::from_millis(800);

/// Who takes part, and what is expected of ours.
pub(crate) struct Contest {
    pub(crate) systems: &'static [System],
    /// Bare lease statements on one connection.
    pub(crate) statements: System,
    /// With several tasks, so many times their cycles.
    pub(crate) several: f64,
    /// Ours with a call for each lock.
    pub(crate) apart: Option<System>,
}

/// Of one measurement.
pub(crate) struct Cycles {
    pub(crate) latencies: Sorted,
    pub(crate) per_second: f64,
    /// The server's processor time a cycle, ns.
    pub(crate) server: f64,
}

impl Cycles {
    pub(crate) async fn of(
        server: &Database,
        system: System,
        tasks: usize,
        time: Duration,
    ) -> Self {
        let spec = Spec {
            // Each ends with a confirmed release.
            keys: 1,
            ..Spec::new(system, Work::Free, server.url.clone())
        };
        let mut fleet = Fleet::start([spec.tasks(tasks)]).await;
        let before = server.processor();
        fleet.go(time).await;
        let outcome = fleet.stop().await.pop().expect("one worker");
        let used = server.processor().saturating_sub(before);
        let latencies = Sorted::from_iter(outcome.latencies);
        let count = latencies.count() as f64;
        Self {
            latencies,
            per_second: count * 1e9 / outcome.elapsed_ns as f64,
            server: used.as_nanos() as f64 / count,
        }
    }
}

pub(crate) async fn measure(report: &mut Report, server: &Database, contest: &Contest) {
    for tasks in [1, 64, 256] {
        let measure = async |system| Cycles::of(server, system, tasks, TIME).await;
        let rounds = Rounds::of(contest.systems, measure).await;
        add(report, server, contest, tasks, &rounds);
    }
}

fn add(
    report: &mut Report,
    server: &Database,
    contest: &Contest,
    tasks: usize,
    rounds: &Rounds<Cycles>,
) {
    let noun = if tasks == 1 { "task" } else { "tasks" };
    let row = |figure: &str, unit, value: fn(&Cycles) -> f64| {
        rounds.row(
            server.case,
            &format!("{tasks} {noun}: {figure}"),
            unit,
            value,
        )
    };
    let p50 = |cycles: &Cycles| cycles.latencies.quantile(0.5);
    let rate = |cycles: &Cycles| cycles.per_second;
    if tasks == 1 {
        let ratio = rounds.ratio(contest.statements, p50);
        let bound = Bound::at_most(1.5, ratio, " x lease statements");
        report.add(row("p50 of a cycle", Unit::Nanoseconds, p50).bound(bound));
    } else {
        let ratio = rounds.ratio(contest.statements, rate);
        let bound = Bound::at_least(contest.several, ratio, " x lease statements");
        report.add(row("cycles", Unit::PerSecond, rate).bound(bound));
    }
    if let Some(apart) = contest.apart.filter(|_| tasks > 1) {
        let ratio = rounds.ratio(apart, rate);
        let bound = (server.disk && tasks == 64).then(|| Bound::at_least(5.0, ratio, " x"));
        let figure = format!("{tasks} tasks: ours over ours, a call for each lock");
        let row = crate::report::Row::new(server.case, &figure, Unit::Plain, ratio);
        report.add(match bound {
            Some(bound) => row.bound(bound),
            None => row,
        });
    }
    report.add(row("p99 of a cycle", Unit::Nanoseconds, |cycles| {
        cycles.latencies.quantile(0.99)
    }));
    report.add(row(
        "server's processor a cycle",
        Unit::Nanoseconds,
        |cycles| cycles.server,
    ));
}

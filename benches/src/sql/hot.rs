//! A hot key, of a process for each task and of few processes.

use std::io::Write as _;
use std::time::{Duration, Instant};

use super::database::Database;
use super::rounds::Rounds;
use crate::hot::{Crowd, Hot, compete_at};
use crate::report::{Bound, Report, Row, Unit};
use crate::stats::Sorted;
use crate::systems::System;

const PROCESSES: usize = 8;
const BODY: Duration = Duration::from_millis(1);
/// Each of 64 tasks has several turns, or their numbers would differ by chance.
const TIME: Duration = Duration::from_secs(4);

/// Who takes part, and what is expected of ours.
pub(crate) struct Contest {
    pub(crate) systems: &'static [System],
    /// A hand-over may take so many ms beside two writes to the disk.
    pub(crate) limit: u32,
}

/// A round, with what the disk took in it.
struct Round {
    hot: Hot,
    /// An `fsync`, ns; zero where commits do not wait for it.
    fsync: f64,
}

pub(crate) async fn measure(report: &mut Report, server: &Database, contest: &Contest) {
    for tasks in [1, 8] {
        let measure = async |system| {
            let fsync = if server.disk { fsync() } else { 0.0 };
            let crowd = Crowd::of_ours(PROCESSES, tasks, BODY).of(system);
            let hot = compete_at(&server.url, crowd, TIME).await;
            Round { hot, fsync }
        };
        let rounds = Rounds::of(contest.systems, measure).await;
        add(report, server, contest.limit, tasks, &rounds);
    }
}

fn add(report: &mut Report, server: &Database, limit: u32, tasks: usize, rounds: &Rounds<Round>) {
    let noun = if tasks == 1 { "task" } else { "tasks" };
    let row = |figure: &str, unit, value: fn(&Hot) -> f64| {
        let figure = format!("hot key, {PROCESSES} processes x {tasks} {noun}: {figure}");
        rounds.row(server.case, &figure, unit, |round| value(&round.hot))
    };
    report.add(row("sections", Unit::PerSecond, |hot| hot.per_second));
    let most = f64::from(limit) * 1e6;
    let limited = rounds.ours(|it| it.hot.gaps.quantile(0.5) / 2.0f64.mul_add(it.fsync, most));
    let limit = match limit {
        1 => " x (1 ms and 2 fsyncs)",
        _ => " x (2 ms and 2 fsyncs)",
    };
    report.add(
        row("release to next entry, p50", Unit::Nanoseconds, |hot| {
            hot.gaps.quantile(0.5)
        })
        .bound(Bound::at_most(1.0, limited, limit)),
    );
    report.add(row(
        "release to next entry, p99",
        Unit::Nanoseconds,
        |hot| hot.gaps.quantile(0.99),
    ));
    report.add(row("wait, p99", Unit::Nanoseconds, |hot| {
        hot.waits.quantile(0.99)
    }));
    let fairness = rounds.ours(|it| it.hot.fairness);
    report.add(
        row("Jain's fairness over the tasks", Unit::Plain, |hot| {
            hot.fairness
        })
        .bound(Bound::at_least(0.99, fairness, "")),
    );
    if server.disk && tasks == 1 {
        let fsync = rounds.ours(|it| it.fsync);
        report.add(Row::new(server.case, "an fsync", Unit::Nanoseconds, fsync));
    }
}

/// The median of a few, on the disk of the server's data.
fn fsync() -> f64 {
    let mut file = tempfile::tempfile().expect("a file");
    let took = (0..50).map(|_| {
        file.write_all(&[0; 8192]).expect("a disk with space");
        let began = Instant::now();
        file.sync_data().expect("a disk");
        began.elapsed().as_nanos() as u64
    });
    took.collect::<Sorted>().quantile(0.5)
}

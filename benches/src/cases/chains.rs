//! A hot key, 8 processes of 8 tasks each, beside the same tasks where the server grants the lock to each of them alone:
//! what it is worth that it passes through a process without the server.

use std::time::Duration;

use crate::bench::Bench;
use crate::hot::{Crowd, Hot, compete};
use crate::report::{Bound, Row, Unit};
use crate::stats::median;
use crate::systems::System;

const PROCESSES: usize = 8;
const TASKS: usize = 8;

/// What the tasks do.
struct Load {
    case: &'static str,
    body: Duration,
    pause: Duration,
    /// How many times as many critical sections there are to be.
    times: f64,
}

const LOADS: [Load; 2] = [
    Load {
        case: "hot key, 8 x 8, empty bodies",
        body: Duration::ZERO,
        pause: Duration::ZERO,
        times: 2.0,
    },
    Load {
        case: "hot key, 8 x 8, random pauses of 20 ms",
        body: Duration::from_millis(1),
        pause: Duration::from_millis(20),
        times: 1.0,
    },
];

/// Both ways in one round.
struct Round {
    ours: Hot,
    alone: Hot,
}

pub(super) async fn run(bench: &mut Bench) {
    for load in LOADS {
        let rounds = measure(bench, &load).await;
        report(bench, &load, &rounds);
    }
}

async fn measure(bench: &Bench, load: &Load) -> Vec<Round> {
    let server = bench.server().await;
    let time = Duration::from_millis(bench.pick(1_000, 1_500));
    let crowd = Crowd {
        pause: load.pause,
        ..Crowd::of_ours(PROCESSES, TASKS, load.body)
    };
    let alone = crowd.of(System::OursAlone);
    let mut rounds = Vec::new();
    for number in 0..bench.pick(3, 5) {
        rounds.push(if number % 2 == 0 {
            let ours = compete(&server, crowd, time).await;
            let alone = compete(&server, alone, time).await;
            Round { ours, alone }
        } else {
            let alone = compete(&server, alone, time).await;
            let ours = compete(&server, crowd, time).await;
            Round { ours, alone }
        });
    }
    rounds
}

fn report(bench: &mut Bench, load: &Load, rounds: &[Round]) {
    let row = |figure: &str, unit, value: &dyn Fn(&Hot) -> f64| {
        let all = |hot: &dyn Fn(&Round) -> f64| median(&rounds.iter().map(hot).collect::<Vec<_>>());
        let row = Row::new(load.case, figure, unit, all(&|it| value(&it.ours)))
            .beside(System::OursAlone, all(&|it| value(&it.alone)));
        (row, all(&|it| value(&it.ours) / value(&it.alone)))
    };
    let (sections, times) = row("critical sections", Unit::PerSecond, &|it| it.per_second);
    let bound = Bound::at_least(load.times, times, " x granted alone");
    bench.report.add(sections.bound(bound));
    let (scripts, _) = row("scripts a critical section", Unit::Plain, &|it| {
        it.each(it.server.scripts)
    });
    bench.report.add(scripts);
    for part in [0.5, 0.99] {
        let figure = format!("release to next entry, p{}", part * 100.0);
        let (gaps, _) = row(&figure, Unit::Nanoseconds, &|it| it.gaps.quantile(part));
        bench.report.add(gaps);
    }
    let (fairness, _) = row("Jain's fairness over the tasks", Unit::Plain, &|it| {
        it.fairness
    });
    bench.report.add(fairness);
}

//! Measures one hot key from its critical sections: fairness, hand-offs and waits.

use std::time::Duration;

use support::RedisServer;

use crate::fleet::{self, Fleet};
use crate::server::{self, Statistics};
use crate::stats::{Sorted, jain};
use crate::systems::System;
use crate::worker::{Outcome, Section, Spec, Work};

/// A measurement of one hot key.
#[derive(Debug)]
pub(crate) struct Hot {
    /// How many critical sections there were.
    pub(crate) sections: f64,
    /// Critical sections per second.
    pub(crate) per_second: f64,
    /// From the end of one section to the start of the next that was already waiting; ns.
    pub(crate) gaps: Sorted,
    /// From request to entry, ns; for those still waiting at the end, the wait so far.
    pub(crate) waits: Sorted,
    /// How long the sections themselves lasted, ns.
    pub(crate) bodies: Sorted,
    /// Jain's fairness over all tasks.
    pub(crate) fairness: f64,
    /// What the server did in that time.
    pub(crate) server: Statistics,
    /// CPU time of the clients, in ns.
    pub(crate) client_ns: f64,
}

impl Hot {
    /// A count per critical section.
    pub(crate) fn each(&self, count: f64) -> f64 {
        count / self.sections
    }
}

/// How the key is made hot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crowd {
    pub(crate) system: System,
    pub(crate) processes: usize,
    /// In each process.
    pub(crate) tasks: usize,
    pub(crate) body: Duration,
    /// Between two critical sections of a task, in the mean.
    pub(crate) pause: Duration,
}

impl Crowd {
    /// Of ours, without pauses.
    pub(crate) fn of_ours(processes: usize, tasks: usize, body: Duration) -> Self {
        Self {
            system: System::Ours,
            processes,
            tasks,
            body,
            pause: Duration::ZERO,
        }
    }

    /// The same, of another system.
    pub(crate) fn of(self, system: System) -> Self {
        Self { system, ..self }
    }
}

/// Lets a crowd compete for some time.
pub(crate) async fn compete(server: &RedisServer, crowd: Crowd, time: Duration) -> Hot {
    let mut fleet = start(&server.url(), crowd).await;
    server::reset(server).await;
    fleet.go(time).await;
    let statistics = server::statistics(server).await;
    let outcomes = fleet.stop().await;
    judge(&outcomes, statistics)
}

/// The same on servers of any kind, whose work is not counted.
pub(crate) async fn compete_at(url: &str, crowd: Crowd, time: Duration) -> Hot {
    let mut fleet = start(url, crowd).await;
    fleet.go(time).await;
    judge(&fleet.stop().await, Statistics::default())
}

async fn start(url: &str, crowd: Crowd) -> Fleet {
    // A waiter that is stopped may leave a lock behind.
    let key = support::unique("hot");
    let spec = |process| Spec {
        tasks: crowd.tasks,
        body_us: crowd.body.as_micros() as u64,
        pause_us: crowd.pause.as_micros() as u64,
        // Many processes: as small as they can be.
        threads: if crowd.processes > 1 { 0 } else { 2 },
        key: key.clone(),
        name: format!("process{process}"),
        ..Spec::new(crowd.system, Work::Hot, url.to_owned())
    };
    Fleet::start((0..crowd.processes).map(spec)).await
}

/// How long a bare round trip takes, in ns: the median, with a pause after each.
pub(crate) async fn round_trip(server: &RedisServer, pause: Duration, time: Duration) -> f64 {
    let spec = Spec {
        body_us: pause.as_micros() as u64,
        ..Spec::new(System::Ceiling, Work::Ping, server.url())
    };
    let outcome = fleet::run(spec, time).await;
    Sorted::from_iter(outcome.latencies).quantile(0.5)
}

/// What all processes have measured, beside what the server counted.
pub(crate) fn judge(outcomes: &[Outcome], server: Statistics) -> Hot {
    let tasks: Vec<_> = outcomes.iter().flat_map(|it| &it.sections).collect();
    let counts: Vec<_> = tasks.iter().map(|task| task.len() as f64).collect();
    let mut sections: Vec<Section> = tasks.into_iter().flatten().copied().collect();
    sections.sort_unstable_by_key(|[_, entered, _]| *entered);
    let seconds = outcomes
        .first()
        .map_or(f64::NAN, |it| it.elapsed_ns as f64 / 1e9);
    let gap = |pair: &[Section]| {
        let ([_, _, left], [asked, entered, _]) = (pair[0], pair[1]);
        (asked <= left).then(|| entered.saturating_sub(left))
    };
    let finished = sections.iter().map(|[asked, entered, _]| entered - asked);
    let unfinished = outcomes.iter().flat_map(|it| &it.unfinished).copied();
    Hot {
        sections: sections.len() as f64,
        per_second: sections.len() as f64 / seconds,
        gaps: sections.windows(2).filter_map(gap).collect(),
        waits: finished.chain(unfinished).collect(),
        bodies: sections
            .iter()
            .map(|[_, entered, left]| left - entered)
            .collect(),
        fairness: jain(&counts),
        server,
        client_ns: outcomes.iter().map(|it| it.cpu_ns as f64).sum(),
    }
}

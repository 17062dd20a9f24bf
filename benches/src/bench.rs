//! What all cases share: the time budget, the systems to compare, and where results go.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use support::RedisServer;

use crate::fleet;
use crate::foreign::Foreign;
use crate::plot::Chart;
use crate::report::Report;
use crate::systems::System;

/// How long a run may take.
const LIMIT: Duration = Duration::from_secs(590);

/// A run of the bench.
#[derive(Debug)]
pub(crate) struct Bench {
    started: Instant,
    /// A shorter run, for a first look.
    pub(crate) quick: bool,
    /// The other libraries that can be measured here.
    pub(crate) peers: Vec<System>,
    pub(crate) report: Report,
    /// Where results are written.
    pub(crate) results: PathBuf,
}

impl Bench {
    /// Finds the peers.
    pub(crate) async fn new(quick: bool, results: PathBuf) -> Self {
        let mut bench = Self {
            started: Instant::now(),
            quick,
            peers: System::CRATES.into(),
            report: Report::default(),
            results,
        };
        for foreign in Foreign::ALL {
            match foreign.install().await {
                Ok(()) => bench.peers.push(foreign.system()),
                Err(reason) => bench
                    .report
                    .notice(format!("{} is left out: {reason}", foreign.system())),
            }
        }
        bench
    }

    /// The first in a quick run, else the second.
    pub(crate) fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// How many seconds are left.
    pub(crate) fn seconds_left(&self) -> u64 {
        LIMIT.saturating_sub(self.started.elapsed()).as_secs()
    }

    /// Starts a server for one case.
    pub(crate) async fn server(&self) -> RedisServer {
        RedisServer::start().await
    }

    /// The systems measured in a round: ours and the ceiling always, the peers in three rounds of a full run and in the
    /// first of a quick one. Every other round goes backwards.
    pub(crate) fn turn(&self, round: usize, always: &[System]) -> Vec<System> {
        let mut systems = always.to_vec();
        if round < self.pick(1, 3) {
            systems.extend(&self.peers);
        }
        if round % 2 == 1 {
            systems.reverse();
        }
        systems
    }

    /// A measurement of this system. A peer that fails is left out from then on; ours and the ceiling must not fail.
    pub(crate) async fn attempt<T>(
        &mut self,
        system: System,
        measurement: impl Future<Output = T>,
    ) -> Option<T> {
        if !self.peers.contains(&system) {
            return Some(measurement.await);
        }
        let outcome = fleet::attempt(measurement).await;
        if outcome.is_none() {
            self.peers.retain(|peer| *peer != system);
            self.report
                .notice(format!("{system} failed and is left out from here on"));
        }
        outcome
    }

    /// Writes a chart among the results.
    pub(crate) fn plot(&self, name: &str, chart: &Chart<'_>) {
        chart.write(&self.results.join(name).with_extension("svg"));
    }
}

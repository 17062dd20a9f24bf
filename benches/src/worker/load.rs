//! Timed work: cycles of acquire and release, bare round trips, and the first lock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{Barrier, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::console::Console;
use super::job::{Outcome, Section, Spec, Work};
use crate::cpu;
use crate::systems::{Ceiling, Locks};

/// The measurements of one task.
#[derive(Debug, Default)]
struct Found {
    latencies: Vec<u64>,
    sections: Vec<Section>,
    unfinished: Option<u64>,
}

/// One task: its first cycle is not counted, then it works from `start` until `stop`.
struct Task<L> {
    locks: L,
    spec: Arc<Spec>,
    number: usize,
    start: Arc<Barrier>,
    stop: watch::Receiver<bool>,
}

pub(super) async fn locks<L: Locks>(spec: &Spec, console: &mut Console) {
    let locks = L::connect(&spec.url).await;
    let spec = Arc::new(spec.clone());
    let (stop, stopped) = watch::channel(false);
    let start = Arc::new(Barrier::new(spec.tasks + 1));
    let mut tasks = JoinSet::new();
    for number in 0..spec.tasks {
        let task = Task {
            locks: locks.clone(),
            spec: Arc::clone(&spec),
            number,
            start: Arc::clone(&start),
            stop: stopped.clone(),
        };
        tasks.spawn(task.run());
    }
    start.wait().await;
    let watch = Watch::start(console).await;
    start.wait().await;
    console.expect("stop").await;
    stop.send_replace(true);
    let mut outcome = watch.stop();
    for found in tasks.join_all().await {
        outcome.latencies.extend(found.latencies);
        outcome.sections.push(found.sections);
        outcome.unfinished.extend(found.unfinished);
    }
    // The process ends as soon as the bench has read this: the last release has to be done.
    drop(locks);
    Console::say(&outcome);
}

impl<L: Locks> Task<L> {
    async fn run(self) -> Found {
        let name = format!("{}:{}", self.spec.name, self.number);
        let keys = (0..self.spec.keys).map(|key| format!("own:{name}:{key}"));
        let keys: Vec<_> = keys.collect();
        let guard = self.locks.take(&keys[0]).await;
        self.locks.free(guard).await;
        self.start.wait().await;
        self.start.wait().await;
        if self.spec.work == Work::Hot {
            self.hot().await
        } else {
            self.free(&keys).await
        }
    }

    async fn free(self, keys: &[String]) -> Found {
        let mut found = Found::default();
        for key in keys.iter().cycle() {
            if self.stop.has_changed().unwrap_or(true) {
                break;
            }
            let asked = Instant::now();
            let guard = self.locks.take(key).await;
            self.locks.free(guard).await;
            found.latencies.push(asked.elapsed().as_nanos() as u64);
        }
        found
    }

    async fn hot(mut self) -> Found {
        let mut found = Found::default();
        let body = Duration::from_micros(self.spec.body_us);
        let pause = Duration::from_micros(self.spec.pause_us);
        loop {
            if !pause.is_zero() {
                sleep(pause.mul_f64(2.0 * fastrand::f64())).await;
            }
            let asked = now();
            let guard = tokio::select! {
                biased;
                _ = self.stop.changed() => {
                    found.unfinished = Some(now() - asked);
                    break;
                }
                guard = self.locks.take(&self.spec.key) => guard,
            };
            let entered = now();
            if !body.is_zero() {
                sleep(body).await;
            }
            let left = now();
            self.locks.free(guard).await;
            found.sections.push([asked, entered, left]);
        }
        found
    }
}

pub(super) async fn pings(spec: &Spec, console: &mut Console) {
    let mut connection = Ceiling::connect(&spec.url).await;
    connection.ping().await;
    let pause = Duration::from_micros(spec.body_us);
    let (stop, stopped) = watch::channel(false);
    let watch = Watch::start(console).await;
    let pings = tokio::spawn(async move {
        let mut latencies = Vec::new();
        while !stopped.has_changed().unwrap_or(true) {
            let asked = Instant::now();
            connection.ping().await;
            latencies.push(asked.elapsed().as_nanos() as u64);
            if !pause.is_zero() {
                sleep(pause).await;
            }
        }
        latencies
    });
    console.expect("stop").await;
    stop.send_replace(true);
    let latencies = pings.await.expect("the pings go on");
    Console::say(&Outcome {
        latencies,
        ..watch.stop()
    });
}

pub(super) async fn cold<L: Locks>(spec: &Spec, console: &mut Console) {
    let watch = Watch::start(console).await;
    let asked = Instant::now();
    let locks = L::connect(&spec.url).await;
    let guard = locks.take(&spec.key).await;
    let latencies = vec![asked.elapsed().as_nanos() as u64];
    locks.free(guard).await;
    console.expect("stop").await;
    Console::say(&Outcome {
        latencies,
        ..watch.stop()
    });
}

/// Measures from `go` on.
pub(super) struct Watch {
    started: Instant,
    cpu: Duration,
    switches: u64,
}

impl Watch {
    pub(super) async fn start(console: &mut Console) -> Self {
        Console::say(&"ready");
        console.expect("go").await;
        Self {
            started: Instant::now(),
            cpu: cpu::of_process(),
            switches: cpu::switches(),
        }
    }

    pub(super) fn stop(self) -> Outcome {
        Outcome {
            elapsed_ns: self.started.elapsed().as_nanos() as u64,
            cpu_ns: cpu::of_process().saturating_sub(self.cpu).as_nanos() as u64,
            switches: Some(cpu::switches().saturating_sub(self.switches)),
            ..Outcome::default()
        }
    }
}

/// The system's monotonic clock, which is the same in all processes.
pub(super) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

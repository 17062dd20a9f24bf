//! What the bench orders from a worker, and what the worker answers.

use serde::{Deserialize, Serialize};

use crate::systems::System;

/// So many that a task never waits for its own release.
const KEYS: usize = 64;

/// What a worker is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// The client to use.
    pub(crate) system: System,
    /// The server.
    pub(crate) url: String,
    /// The kind of work.
    pub(crate) work: Work,
    /// The number of tasks.
    pub(crate) tasks: usize,
    /// How many keys of its own a task takes in turn.
    pub(crate) keys: usize,
    /// The hot key.
    pub(crate) key: String,
    /// The prefix that makes the worker's own keys unique.
    pub(crate) name: String,
    /// How long each critical section lasts, or the pause after each round trip.
    pub(crate) body_us: u64,
    /// How long a task pauses between two critical sections, in the mean: at random from nothing to twice as long.
    pub(crate) pause_us: u64,
    /// The lease, where the case is about leases.
    pub(crate) ttl_ms: u64,
    /// Threads for the callers; 0 for the main thread alone.
    pub(crate) threads: usize,
}

impl Spec {
    /// One task of work on a multi-thread runtime with two threads.
    pub(crate) fn new(system: System, work: Work, url: String) -> Self {
        Self {
            system,
            url,
            work,
            tasks: 1,
            keys: KEYS,
            key: "hot".into(),
            name: "worker".into(),
            body_us: 0,
            pause_us: 0,
            ttl_ms: 10_000,
            threads: 2,
        }
    }

    /// Sets the number of tasks.
    pub(crate) fn tasks(self, tasks: usize) -> Self {
        Self { tasks, ..self }
    }
}

/// How many may wait where more is [offered](Work::Offered) than a lock can serve.
pub(crate) const MOST_WAITERS: u32 = 8;

/// The kinds of work. Unless noted otherwise, `go` starts it and `stop` ends it, answered by an [`Outcome`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Work {
    /// Takes and frees keys that nobody else takes.
    Free,
    /// Takes and frees one key that all take.
    Hot,
    /// Asks for one key whenever a request comes, with a limited queue, whether or not earlier requests have ended.
    Offered,
    /// Bare round trips.
    Ping,
    /// Connects and takes a first lock at `go`.
    Cold,
    /// Holds locks: `take N`, `sample`, `block MS`, `drop`; each is answered.
    Held,
    /// Takes and frees `keys FROM TO` once each; `sample`.
    Keys,
}

/// The measurements between `go` and `stop`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// The elapsed time.
    pub(crate) elapsed_ns: u64,
    /// CPU time of this process.
    pub(crate) cpu_ns: u64,
    /// How often its threads have left their processors; workers of other languages do not count that.
    #[serde(default)]
    pub(crate) switches: Option<u64>,
    /// How long each cycle took.
    pub(crate) latencies: Vec<u64>,
    /// The critical sections of each task on the hot key.
    pub(crate) sections: Vec<Vec<Section>>,
    /// How long the tasks that never entered had waited.
    pub(crate) unfinished: Vec<u64>,
    /// How many requests were refused since the queue was full.
    #[serde(default)]
    pub(crate) refused: u64,
}

/// When a critical section was asked for, entered and left, in ns of the system's monotonic clock.
pub(crate) type Section = [u64; 3];

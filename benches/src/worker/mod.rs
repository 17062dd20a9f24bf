//! A process that does one piece of work on request, and the lines in which it speaks with the bench.
//!
//! It reads its [`Spec`] from the first line of its standard input, connects and says `ready`. Then it takes orders,
//! one a line; what a [`Work`] obeys is said there. Workers of other languages speak the same way. It ends when its
//! standard input does.

mod console;
mod keeper;
mod load;

use serde::{Deserialize, Serialize};

use crate::systems::{
    AsyncRedisLock, Ceiling, Detached, DistributedLock, Locks, Ours, Readers, Rlock, Rslock, System,
};
pub(crate) use keeper::Sample;

use console::Console;

/// What a worker is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// With which client.
    pub(crate) system: System,
    /// On which server.
    pub(crate) url: String,
    /// What.
    pub(crate) work: Work,
    /// How many at once.
    pub(crate) tasks: usize,
    /// The hot key.
    pub(crate) key: String,
    /// What makes the worker's own keys its own.
    pub(crate) name: String,
    /// How long each critical section lasts, or the pause after each round trip.
    pub(crate) body_us: u64,
    /// How long a task does nothing between two critical sections.
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
            key: "hot".into(),
            name: "worker".into(),
            body_us: 0,
            pause_us: 0,
            ttl_ms: 10_000,
            threads: 2,
        }
    }

    /// With so many tasks.
    pub(crate) fn tasks(self, tasks: usize) -> Self {
        Self { tasks, ..self }
    }
}

/// The kinds of work. `go` begins it and `stop` ends it, with an [`Outcome`], where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Work {
    /// Takes and frees keys that nobody else takes.
    Free,
    /// Takes and frees one key that all take.
    Hot,
    /// Bare round trips.
    Ping,
    /// Connects and takes a first lock at `go`.
    Cold,
    /// Holds locks: `take N`, `sample`, `block MS`, `drop`; each is answered.
    Held,
    /// Takes and frees `keys FROM TO` once each; `sample`.
    Keys,
}

/// What came of the work between `go` and `stop`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// How long it went on.
    pub(crate) elapsed_ns: u64,
    /// What it cost in this process.
    pub(crate) cpu_ns: u64,
    /// How long each cycle took.
    pub(crate) latencies: Vec<u64>,
    /// The critical sections of each task on the hot key.
    pub(crate) sections: Vec<Vec<Section>>,
    /// How long those had waited who did not enter any more.
    pub(crate) unfinished: Vec<u64>,
}

/// When a critical section was asked for, entered and left, in ns of the system's monotonic clock.
pub(crate) type Section = [u64; 3];

/// Works until standard input ends.
pub(crate) fn main() {
    let mut console = Console::open();
    let spec: Spec = serde_json::from_str(&console.first_line()).expect("what to do, as JSON");
    let mut builder = match spec.threads {
        0 => tokio::runtime::Builder::new_current_thread(),
        threads => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
    };
    let runtime = builder.enable_all().build().expect("a runtime");
    runtime.block_on(async {
        match spec.system {
            System::Ours => work::<Ours>(spec, console).await,
            System::OursDetached => work::<Detached>(spec, console).await,
            System::OursRead => work::<Readers>(spec, console).await,
            System::Ceiling => work::<Ceiling>(spec, console).await,
            System::Rslock => work::<Rslock>(spec, console).await,
            System::Rlock => work::<Rlock>(spec, console).await,
            System::AsyncRedisLock => work::<AsyncRedisLock>(spec, console).await,
            System::DistributedLock => work::<DistributedLock>(spec, console).await,
            System::RedisPy | System::Redlock => panic!("{} is not written in Rust", spec.system),
        }
    });
}

async fn work<L: Locks>(spec: Spec, mut console: Console) {
    match spec.work {
        Work::Free | Work::Hot => load::locks::<L>(&spec, &mut console).await,
        Work::Ping => load::pings(&spec, &mut console).await,
        Work::Cold => load::cold::<L>(&spec, &mut console).await,
        Work::Held => keeper::hold(&spec, &mut console).await,
        Work::Keys => keeper::keys(&spec, &mut console).await,
    }
    console.until_closed().await;
}

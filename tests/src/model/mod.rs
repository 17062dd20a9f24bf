//! Random operations of several processes, and a checker that compares what they did with a model of locks: see
//! `make model`.

mod check;
mod event;
mod meddle;
mod plan;
mod report;
mod store;
mod work;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::sleep};

pub use report::Report;
pub use store::Store;
pub use work::work;

use crate::{Worker, connect, log, take};
use event::{Event, What};
use meddle::Meddler;
use store::Server;

/// How many processes take locks.
pub const PROCESSES: usize = 4;
/// How many operations each of them does at a time.
pub const TASKS: usize = 12;
/// How many locks there are.
pub const KEYS: usize = 10;

/// The lock that is asked for most: exclusively, mostly.
const HOT: usize = 2;
/// The lease of most locks.
const TTL: Duration = Duration::from_millis(400);

/// Longer than any lease, and than it takes to notice its end.
const RECOVERY: Duration = Duration::from_secs(5);

/// Which operations a process does.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// What decides all choices.
    pub seed: u64,
    /// How many operations all processes do.
    pub operations: usize,
    /// The number of the process.
    pub process: usize,
}

/// Does and checks so many operations with the choices of a seed; `program work URL DIRECTORY SEED OPERATIONS PROCESS`
/// is a process. Also says how long that took.
pub async fn run(store: Store, seed: u64, operations: usize, program: &str) -> (Report, Duration) {
    let started = Instant::now();
    let server = Arc::new(Server::start(store).await);
    let directory = tempfile::tempdir().expect("a directory");
    let meddler = Arc::new(Meddler::new(Arc::clone(&server), directory.path()).await);
    let mut crew = JoinSet::new();
    for process in 0..PROCESSES {
        let share = Share {
            seed,
            operations,
            process,
        };
        let directory = directory.path().to_string_lossy().into_owned();
        let meddler = Arc::clone(&meddler);
        crew.spawn(tend(
            share,
            server.url(),
            directory,
            program.to_owned(),
            meddler,
        ));
    }
    crew.join_all().await;
    let took = started.elapsed();
    let events = log::read(directory.path(), Event::parse).expect("the histories can be read");
    let mut report = check::check(&events, store.counted());
    report.chains = server.chains(grants(&events)).await;
    check_end(&server, &mut report).await;
    (report, took)
}

/// What was granted, each key with its fence.
fn grants(events: &[Event]) -> impl Iterator<Item = (&str, u64)> {
    events.iter().flat_map(|event| {
        let (fence, keys) = match &event.what {
            What::Granted(fence, _, keys) => (*fence, keys.as_slice()),
            _ => (0, &[][..]),
        };
        keys.iter().map(move |key| (key.as_str(), fence))
    })
}

/// Does to a process what its operations ask for, until there are no more of them.
async fn tend(
    share: Share,
    url: String,
    directory: String,
    program: String,
    meddler: Arc<Meddler>,
) {
    let Share {
        seed,
        operations,
        process,
    } = share;
    let numbers = [
        seed.to_string(),
        operations.to_string(),
        process.to_string(),
    ];
    let [seed, operations, process] = &numbers;
    let args = ["work", &url, &directory, seed, operations, process];
    let mut worker = Worker::spawn(&program, args).await;
    loop {
        let line = worker.line().await;
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["alive"] => {}
            ["kill"] => {
                worker.kill().await;
                worker = Worker::spawn(&program, args).await;
            }
            ["stop", millis] => {
                worker.pause();
                let millis = millis.parse().expect("a number");
                sleep(Duration::from_millis(millis)).await;
                worker.resume();
                worker.send("go on").await;
            }
            ["cut"] => meddler.cut(worker.pid()).await,
            ["force", operation, key] => meddler.force(operation, key).await,
            ["forget", operation, key] => meddler.forget(operation, key).await,
            ["done"] => return,
            other => panic!("a worker says {other:?}"),
        }
    }
}

/// Every entry of a lock has an end, and every lock can be taken and leaves nothing.
async fn check_end(server: &Server, report: &mut Report) {
    let lasting = server.lasting().await.into_iter();
    let lasting = lasting.map(|key| format!("left {key} without a ttl"));
    for what in lasting.chain(server.trouble().await) {
        report.complain(log::monotonic(), report.operations, what);
    }
    let locks = connect(server.url()).await;
    for number in 0..KEYS {
        let key = format!("model-{number}");
        take(&locks, &key, RECOVERY).await.release();
    }
    locks.shutdown().await;
    server.is_empty().await;
}

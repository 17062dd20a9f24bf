//! `torture-worker LIBRARY URL DIRECTORY TTL LONG SHORT`: takes locks of another library under torture, with the same work as
//! `tests/python/torture.py`.

mod history;
mod library;
mod majorities;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, stdin};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::history::{History, now};
use crate::library::{AsyncRedisLock, DistributedLock, Library, Rlock, Rslock};
use crate::majorities::{EtcdClient, ZooKeeperClient};

/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(20);

/// The keys of some tasks, how many steps they take at most under a lock, and how long each step lasts.
type Work = (Range<usize>, u32, Duration);

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [library, args @ ..] = args.as_slice() else {
        panic!("torture-worker LIBRARY URL DIRECTORY TTL LONG SHORT");
    };
    let work = async {
        match library.as_str() {
            "rslock" => run::<Rslock>(args).await,
            "rlock" => run::<Rlock>(args).await,
            "async-redis-lock" => run::<AsyncRedisLock>(args).await,
            "distributed-lock" => run::<DistributedLock>(args).await,
            "etcd-client" => run::<EtcdClient>(args).await,
            "zookeeper-client" => run::<ZooKeeperClient>(args).await,
            _ => panic!("no such library: {library}"),
        }
    };
    // Its parent's end is the end of its standard input.
    let mut rest = Vec::new();
    let mut input = stdin();
    tokio::select! {
        () = work => {}
        _ = input.read_to_end(&mut rest) => {}
    }
    std::process::exit(0);
}

async fn run<L: Library>(args: &[String]) {
    let [url, directory, numbers @ ..] = args else {
        panic!("a URL and a folder are missing");
    };
    let numbers: Vec<usize> = numbers
        .iter()
        .map(|it| it.parse().expect("a number"))
        .collect();
    let &[ttl, long, short] = numbers.as_slice() else {
        panic!("TTL, LONG or SHORT is missing");
    };
    let ttl = Duration::from_millis(ttl as u64);
    let library = loop {
        match L::connect(url, ttl).await {
            Some(library) => break library,
            None => sleep(PAUSE).await,
        }
    };
    let history = History::open(Path::new(directory)).expect("the history can be written");
    let history = Arc::new(history);
    let mut tasks = JoinSet::new();
    let works = [
        (long, (0..long, 300, Duration::from_millis(5))),
        (short, (long..long + short, 2, Duration::from_millis(1))),
    ];
    for (count, work) in works {
        for _ in 0..count {
            let (library, history, work) = (library.clone(), Arc::clone(&history), work.clone());
            tasks.spawn(async move {
                loop {
                    if turn(&library, &history, work.clone()).await.is_none() {
                        sleep(PAUSE).await;
                    }
                }
            });
        }
    }
    tasks.join_all().await;
}

/// Some steps under one of the locks; `None` if it was not granted.
async fn turn<L: Library>(library: &L, history: &History, (keys, most, pause): Work) -> Option<()> {
    let (key, steps) = (fastrand::usize(keys), fastrand::u32(1..=most));
    let grant = history.grant(key);
    history.note("asked", grant, now());
    let Some(mut lock) = library.take(&format!("torture-{key}")).await else {
        history.note("refused", grant, now());
        return None;
    };
    for step in 0..steps {
        let kind = if step == 0 { "enter" } else { "poll" };
        history.note(kind, grant, now());
        sleep(pause).await;
        if !library.goes_on(&mut lock).await {
            history.note("lost", grant, now());
            return Some(());
        }
    }
    let held = library.free(lock).await;
    history.note(if held { "done" } else { "lost" }, grant, now());
    Some(())
}

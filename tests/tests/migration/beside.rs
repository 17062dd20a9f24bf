//! Clients of both sides that enter the critical sections of one lock.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use std::time::Duration;

use tests::{Register, Worker, connect, eventually, take, within};
use tokio::task::JoinSet;

/// Everybody takes part, and is slow on a busy machine.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The lease of ours: nobody waits for its end.
const LEASE: Duration = Duration::from_secs(10);

/// Both sides at work.
pub(crate) struct Beside {
    /// Those of the other side, which end before what they are connected to.
    pub(crate) others: Vec<Worker>,
    register: Arc<Register>,
    ours: JoinSet<Vec<u64>>,
    entered: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

/// How often both sides have entered, and what else the others tell.
#[derive(Debug)]
pub(crate) struct Entries {
    pub(crate) ours: u64,
    /// How many of theirs were entered while one of ours waited, from the fewest to the most.
    pub(crate) overtaken: Vec<u64>,
    pub(crate) theirs: Vec<u64>,
    pub(crate) taken: u64,
    pub(crate) overlaps: Vec<String>,
}

impl Beside {
    /// Starts `tasks` of ours, each with a connection of its own, beside others that are `ready`.
    pub(crate) async fn start(
        register: Register,
        url: &str,
        key: &'static str,
        tasks: usize,
        mut others: Vec<Worker>,
    ) -> Self {
        let (register, stop) = (Arc::new(register), Arc::new(AtomicBool::new(false)));
        let entered = Arc::new(AtomicU64::new(0));
        for worker in &mut others {
            assert_eq!(worker.line().await, "ready");
        }
        let mut ours = JoinSet::new();
        for _ in 0..tasks {
            let (locks, register, stop) = (connect(url).await, register.clone(), stop.clone());
            let entered = entered.clone();
            ours.spawn(async move {
                let mut overtaken = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let theirs = async || {
                        let all = register.sections().await;
                        all.saturating_sub(entered.load(Ordering::Relaxed))
                    };
                    let before = theirs().await;
                    let guard = take(&locks, key, LEASE).await;
                    overtaken.push(theirs().await.saturating_sub(before));
                    let section = register.enter_unfenced(key).await;
                    entered.fetch_add(1, Ordering::Relaxed);
                    section.leave().await;
                    guard.release();
                    // As others work between two sections.
                    tokio::time::sleep(Duration::from_millis(fastrand::u64(0..5))).await;
                }
                overtaken
            });
        }
        for worker in &mut others {
            worker.send("go").await;
        }
        Self {
            others,
            register,
            ours,
            entered,
            stop,
        }
    }

    /// Until so many more sections were entered.
    pub(crate) async fn passed(&self, sections: u64) {
        let least = self.register.sections().await + sections;
        eventually(TIME_LIMIT, async || self.register.sections().await >= least).await;
    }

    /// Until the others have entered so many sections.
    pub(crate) async fn passed_by_others(&self, sections: u64) {
        let theirs = async || {
            let ours = self.entered.load(Ordering::Relaxed);
            self.register.sections().await.saturating_sub(ours)
        };
        eventually(TIME_LIMIT, async || theirs().await >= sections).await;
    }

    /// Stops both sides, and checks that no section was entered unseen.
    pub(crate) async fn end(mut self) -> Entries {
        self.stop.store(true, Ordering::Relaxed);
        for worker in &mut self.others {
            worker.send("stop").await;
        }
        let (mut theirs, mut taken) = (Vec::new(), 0);
        for worker in &mut self.others {
            let line = within(TIME_LIMIT, worker.line()).await;
            let numbers: Vec<u64> = line.split(' ').map(|it| it.parse().unwrap()).collect();
            theirs.push(numbers[0]);
            taken += numbers.get(1).copied().unwrap_or(0);
        }
        let mut overtaken = within(TIME_LIMIT, self.ours.join_all()).await.concat();
        overtaken.sort_unstable();
        Entries {
            ours: self.entered.load(Ordering::Relaxed),
            overtaken,
            theirs,
            taken,
            overlaps: self.register.violations().await,
        }
    }
}

impl Entries {
    /// Prints them under the name of the others.
    pub(crate) fn print(&self, others: &str) {
        let Self {
            ours,
            overtaken,
            theirs,
            taken,
            overlaps,
        } = self;
        let half = overtaken[overtaken.len() / 2];
        let most = overtaken.last().unwrap();
        let taken = match taken {
            0 => String::new(),
            taken => format!(", {taken} of them after a take-over"),
        };
        println!(
            "lock-runtime {} beside {others}: entries {ours} of ours, {theirs:?} of theirs{taken}; \
             a waiter of ours was overtaken {half} times (median), {most} at the most; {} overlaps",
            env!("CARGO_PKG_VERSION"),
            overlaps.len()
        );
        assert_eq!(*overlaps, [""; 0], "two inside at the same time");
    }
}

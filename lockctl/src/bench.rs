//! `lockctl bench`: what locks cost on this server, under a key of its own and with a bound
//! on the load.

use std::time::{Duration, Instant};

use lock_runtime::{LockError, LockGuard, LockManager};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::cli::{BenchArgs, StoreArgs};
use crate::exit::{Done, Exit};
use crate::output::{self, Output};
use crate::record;
use crate::store::connect;

/// How long each of them works.
const WORK: Duration = Duration::from_millis(5);

pub(crate) async fn bench(store: &StoreArgs, args: &BenchArgs, output: &Output) -> Done {
    let (one, other) = (connect(store).await?, connect(store).await?);
    let key = format!("lockctl:bench:{}:{:?}", std::process::id(), Instant::now());
    let bench = Bench {
        key,
        time: Duration::from_secs(args.seconds) / 3,
        pause: Duration::from_secs(1) / args.rate,
    };
    let measures = [
        (
            "cycle",
            "an acquisition and its release",
            bench.cycles(&one).await?,
        ),
        (
            "hand-over",
            "from a release to the next holder",
            bench.hand_overs(&one, &other).await?,
        ),
        (
            "wait",
            "eight in the queue, each works for 5 ms",
            bench.waits(&one, &other).await?,
        ),
    ];
    let mut rows = Vec::new();
    for (measure, what, mut times) in measures {
        times.sort_unstable();
        let at = |part: f64| quantile(&times, part);
        let record = record::Figures {
            measure,
            count: times.len(),
            median_us: at(0.5),
            p99_us: at(0.99),
            max_us: at(1.0),
        };
        if output.is_json() {
            output::object(&record)?;
        }
        rows.push(vec![
            measure.to_owned(),
            record.count.to_string(),
            millis(record.median_us),
            millis(record.p99_us),
            millis(record.max_us),
            what.to_owned(),
        ]);
    }
    if !output.is_json() {
        output::table(&["MEASURE", "COUNT", "MEDIAN", "99 %", "WORST", ""], rows)?;
    }
    Ok(Exit::Success)
}

struct Bench {
    key: String,
    /// For each of the measures.
    time: Duration,
    /// Between two acquisitions.
    pause: Duration,
}

impl Bench {
    async fn take(&self, locks: &LockManager) -> Result<LockGuard, LockError> {
        locks
            .lock(&*self.key)
            .function("lockctl:bench")
            .wait_forever()
            .acquire()
            .await
    }

    /// An acquisition and its confirmed release, again and again.
    async fn cycles(&self, locks: &LockManager) -> Result<Vec<Duration>, LockError> {
        let mut times = Vec::new();
        let end = Instant::now() + self.time;
        while Instant::now() < end {
            let begun = Instant::now();
            self.take(locks).await?.release_confirmed().await?;
            let took = begun.elapsed();
            times.push(took);
            sleep(self.pause.saturating_sub(took)).await;
        }
        Ok(times)
    }

    /// Two take turns; from the release of one to the grant of the other.
    async fn hand_overs(
        &self,
        one: &LockManager,
        other: &LockManager,
    ) -> Result<Vec<Duration>, LockError> {
        let mut times = Vec::new();
        let end = Instant::now() + self.time;
        let mut guard = self.take(one).await?;
        let mut turn = [other, one].into_iter().cycle();
        while Instant::now() < end {
            let Some(next) = turn.next() else { break };
            let wait = self.take(next);
            let release = async {
                // Until the other one waits.
                sleep(self.pause.max(WORK)).await;
                let released = Instant::now();
                guard.release();
                Ok(released)
            };
            let (granted, released) = tokio::try_join!(
                async { wait.await.map(|guard| (guard, Instant::now())) },
                release
            )?;
            times.push(granted.1.saturating_duration_since(released));
            guard = granted.0;
        }
        guard.release_confirmed().await?;
        Ok(times)
    }

    /// A crowd takes turns; from the request of each to its grant.
    async fn waits(
        &self,
        one: &LockManager,
        other: &LockManager,
    ) -> Result<Vec<Duration>, LockError> {
        let (sender, mut times) = mpsc::unbounded_channel();
        let end = Instant::now() + self.time;
        let member = |locks: LockManager| {
            let sender = sender.clone();
            async move {
                while Instant::now() < end {
                    let begun = Instant::now();
                    let guard = self.take(&locks).await?;
                    // We hold the other end.
                    let _ = sender.send(begun.elapsed());
                    sleep(WORK.max(self.pause)).await;
                    guard.release_confirmed().await?;
                }
                Ok::<_, LockError>(())
            }
        };
        let pair = || async { tokio::try_join!(member(one.clone()), member(other.clone())) };
        // Eight of them.
        tokio::try_join!(pair(), pair(), pair(), pair())?;
        drop(sender);
        let mut all = Vec::new();
        while let Some(time) = times.recv().await {
            all.push(time);
        }
        Ok(all)
    }
}

/// In whole microseconds, of times that are sorted.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "an index below the length"
)]
fn quantile(times: &[Duration], part: f64) -> u64 {
    let last = times.len().saturating_sub(1);
    let at = (last as f64 * part).round() as usize;
    let time = times.get(at).copied().unwrap_or_default();
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn millis(micros: u64) -> String {
    format!("{}.{:02} ms", micros / 1_000, micros % 1_000 / 10)
}

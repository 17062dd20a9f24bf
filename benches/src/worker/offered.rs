//! Requests that come whether or not earlier ones have ended, for one lock whose queue is limited.

use std::iter;
use std::time::Duration;

use lock_runtime::{LockError, LockManager};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::console::Console;
use super::job::{MOST_WAITERS, Section, Spec};
use super::load::{Watch, now};

pub(super) async fn requests(spec: &Spec, console: &mut Console) {
    let locks = LockManager::connect(&*spec.url).await.expect("a server");
    // The server has to know the scripts.
    request(locks.clone(), spec.clone()).await;
    let watch = Watch::start(console).await;
    let mut requests = JoinSet::new();
    let mut due = Instant::now();
    let mut stop = Box::pin(console.expect("stop"));
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            () = sleep_until(due) => {}
        }
        requests.spawn(request(locks.clone(), spec.clone()));
        due += Duration::from_micros(fastrand::u64(..=2 * spec.pause_us));
    }
    drop(stop);
    let mut outcome = watch.stop();
    let ended = iter::from_fn(|| requests.try_join_next());
    let ended: Vec<_> = ended.map(|it| it.expect("a request ends")).collect();
    outcome.refused = ended.iter().filter(|it| it.is_none()).count() as u64;
    outcome.sections = vec![ended.into_iter().flatten().collect()];
    requests.join_all().await;
    locks.shutdown().await;
    Console::say(&outcome);
}

/// The critical section, or nothing if the queue is full.
async fn request(locks: LockManager, spec: Spec) -> Option<Section> {
    let asked = now();
    let request = locks.lock(&*spec.key).wait_forever();
    let guard = match request.max_waiters(MOST_WAITERS).acquire().await {
        Ok(guard) => guard,
        Err(LockError::Contended { .. }) => return None,
        Err(error) => panic!("{error}"),
    };
    let entered = now();
    sleep(Duration::from_micros(spec.body_us)).await;
    let left = now();
    guard.release_confirmed().await.expect("an answer");
    Some([asked, entered, left])
}

//! What a process does whose library is compared with others: the same as `tests/python/torture.py`, with this project's
//! locks.

use std::{ops::Range, path::Path, sync::Arc, time::Duration};

use lock_runtime::{LockConfig, LockManager};
use tokio::{task::JoinSet, time::sleep};

use super::{
    LONG, SHORT,
    body::noted,
    history::{History, Kind, Mode},
    lock_name,
};

/// The pause after an acquisition that failed.
const PAUSE: Duration = Duration::from_millis(20);

/// Works under locks of this server until the process ends.
pub async fn run(url: &str, directory: &Path, ttl: Duration) {
    let config = LockConfig::new(url).expect("a URL of a store that is built in");
    let locks = LockManager::connect(config.ttl(ttl).wait_forever().lazy());
    let locks = locks.await.expect("a manager");
    let history = Arc::new(History::open(directory).expect("the history can be written"));
    let mut tasks = JoinSet::new();
    let long = (0..LONG, 300, Duration::from_millis(5));
    let short = (LONG..LONG + SHORT, 2, Duration::from_millis(1));
    for (work, count) in [(long, LONG), (short, SHORT)] {
        for _ in 0..count {
            let (work, locks, history) = (work.clone(), locks.clone(), Arc::clone(&history));
            tasks.spawn(async move {
                loop {
                    turn(&locks, &history, work.clone()).await;
                }
            });
        }
    }
    tasks.join_all().await;
}

/// Up to so many steps under one of the locks, with a pause after each.
async fn turn(
    locks: &LockManager,
    history: &History,
    (keys, most, pause): (Range<usize>, u32, Duration),
) {
    let (key, steps) = (fastrand::usize(keys), fastrand::u32(1..=most));
    let mut grant = history.grant(key, 0, Mode::Alone);
    history.note(Kind::Asked, grant);
    let Ok(guard) = locks.lock(lock_name(key)).acquire().await else {
        history.note(Kind::Refused, grant);
        sleep(PAUSE).await;
        return;
    };
    grant.fence = guard.fencing_token().get();
    let work = async {
        for _ in 0..steps {
            sleep(pause).await;
        }
    };
    let ended = noted(work, &guard, &[grant], history).await;
    let end = if ended.is_ok() {
        Kind::Done
    } else {
        Kind::Lost
    };
    history.note(end, grant);
}

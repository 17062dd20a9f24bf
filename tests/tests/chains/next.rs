//! Who lets go of a lock lets the next one in its process enter before it goes on.

use std::sync::{Arc, Mutex};

use tests::{LONG, TIME_LIMIT, within};
use tokio::task::JoinSet;

use crate::{KEY, Scene};

/// How often it may happen in turn that the manager's thread works at the moment of a release, and the releaser goes on.
const ROUNDS: u32 = 20;

#[tokio::test]
async fn the_next_one_here_enters_before_its_releaser_goes_on() {
    for _ in 0..ROUNDS {
        let log = round().await;
        if log[..2] == ["a enters", "b enters"] {
            return;
        }
        assert_eq!(log, ["a enters", "a goes on", "b enters", "b goes on"]);
    }
    panic!("the releaser went on first, {ROUNDS} times in turn");
}

/// What two waiters of one process do when the lock is handed to both.
async fn round() -> Vec<String> {
    let scene = Scene::new().await;
    let (guard, locks) = (scene.hold().await, scene.manager().await);
    let log = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for (position, name) in (1..).zip(["a", "b"]) {
        let request = locks.lock(KEY).ttl(LONG).wait_forever();
        let log = Arc::clone(&log);
        tasks.spawn(async move {
            let note = |what| log.lock().unwrap().push(format!("{name} {what}"));
            let guard = request.acquire().await.unwrap();
            note("enters");
            guard.release_confirmed().await.unwrap();
            note("goes on");
        });
        scene.server.queued(KEY, position).await;
    }
    guard.release();
    within(TIME_LIMIT, tasks.join_all()).await;
    std::mem::take(&mut *log.lock().unwrap())
}

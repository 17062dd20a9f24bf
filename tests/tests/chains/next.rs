//! Who lets go of a lock lets the next one in its process enter before it goes on.

use std::sync::{Arc, Mutex};

use tests::{LONG, PATIENCE, within};
use tokio::task::JoinSet;

use crate::{KEY, Line};

#[tokio::test]
async fn the_next_one_here_enters_before_its_releaser_goes_on() {
    let line = Line::new().await;
    let (guard, locks) = (line.hold().await, line.manager().await);
    let log = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for (place, name) in (1..).zip(["a", "b"]) {
        let request = locks.lock(KEY).ttl(LONG).wait_forever();
        let log = Arc::clone(&log);
        tasks.spawn(async move {
            let note = |what| log.lock().unwrap().push(format!("{name} {what}"));
            let guard = request.acquire().await.unwrap();
            note("enters");
            guard.release_confirmed().await.unwrap();
            note("goes on");
        });
        line.server.in_line(KEY, place).await;
    }
    guard.release();
    within(PATIENCE, tasks.join_all()).await;
    let log = log.lock().unwrap();
    assert_eq!(*log, ["a enters", "b enters", "a goes on", "b goes on"]);
}

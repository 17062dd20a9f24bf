//! Observers see every leader that lasts longer than a second, on a clock that the test moves.
//!
//! Section: guarantees.md#elections

use std::time::Duration;

use lock_runtime::testing::Locks;
use lock_runtime::{Leaders, LockError};
use tokio::time::sleep;

const ELECTION: &str = "reports";

/// A little longer than a second.
const LASTS: Duration = Duration::from_millis(1_050);

async fn data(mut leaders: Leaders) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(leader) = leaders.next().await {
        seen.push(leader.data.into());
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn a_thousand_observers_see_a_thousand_leaders() -> Result<(), LockError> {
    const MANY: usize = 1_000;
    let locks = Locks::new();
    let manager = locks.manager();
    let mut observers = Vec::new();
    for _ in 0..MANY {
        let leaders = manager.election(ELECTION).observe()?;
        observers.push(tokio::spawn(data(leaders)));
    }
    for number in 0..MANY {
        let candidate = manager.election(ELECTION).candidate(number.to_string());
        let leadership = candidate.campaign().await?;
        sleep(LASTS).await;
        if number % 10 == 0 {
            manager.force_release(ELECTION).await?;
            leadership.lost().await;
        }
        leadership.resign();
    }
    manager.shutdown().await;
    let all: Vec<_> = (0..MANY).map(|it| it.to_string()).collect();
    for observer in observers {
        assert_eq!(observer.await.expect("no panic"), all);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn observers_go_on_when_the_server_is_back() -> Result<(), LockError> {
    let locks = Locks::new();
    let manager = locks.manager();
    let observer = tokio::spawn(data(manager.election(ELECTION).observe()?));
    locks.delay(Duration::from_millis(200));
    for number in 0..20 {
        let candidate = manager.election(ELECTION).candidate(number.to_string());
        let leadership = candidate.campaign().await?;
        sleep(LASTS).await;
        locks.disconnect();
        sleep(LASTS).await;
        locks.reconnect();
        sleep(LASTS).await;
        leadership.resign();
    }
    manager.shutdown().await;
    let all: Vec<_> = (0..20).map(|it| it.to_string()).collect();
    assert_eq!(observer.await.expect("no panic"), all);
    Ok(())
}

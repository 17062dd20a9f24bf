//! Changes balances in transactions of its own under locks, and goes on blindly after a stop.

use std::time::Duration;

use lock_runtime::{LockConfig, LockGuard, LockManager};
use tests::{SqlError, User, connect};
use tokio::{sync::watch, task::JoinSet};

use crate::Orders;

/// Shorter than the stop.
const TTL: Duration = Duration::from_millis(400);
const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// Takes the locks of so many accounts, each by a task with a transaction that reads the balance, and says `ready`. With
/// the next order, which comes after the stop, writes what it makes of the balances, and says `ACCOUNT OUTCOME` for each.
///
/// The task of account 0, 4, 8… asserts its fence before the stop, the next one after it, the next one both times, and
/// the next one, where the test says so by the order `blind`, never.
pub(crate) async fn transfers(mut orders: Orders, url: &str, accounts: usize) {
    // A busy machine may be later than such short leases allow.
    let config = LockConfig::new(url).expect("a URL");
    let locks = connect(config.unavailable_wait_forever()).await;
    let blind = orders.recv().await.expect("an order") == "blind";
    let go = watch::Sender::new(false);
    let mut starting = JoinSet::new();
    for account in 0..accounts {
        let (locks, url) = (locks.clone(), url.to_owned());
        starting.spawn(async move { Transfer::begin(&locks, &url, account, blind).await });
    }
    let mut finishing = JoinSet::new();
    for transfer in starting.join_all().await {
        let mut went = go.subscribe();
        finishing.spawn(async move {
            went.wait_for(|it| *it).await.expect("an order");
            transfer.finish().await
        });
    }
    println!("ready");
    orders.recv().await;
    go.send_replace(true);
    for (account, outcome) in finishing.join_all().await {
        match outcome {
            Ok(()) => println!("{account} committed"),
            Err(error) => println!("{account} {}", error.code),
        }
    }
    println!("done");
}

struct Transfer {
    account: usize,
    user: User,
    assertion: Option<String>,
    seen: i64,
    _guard: LockGuard,
}

impl Transfer {
    async fn begin(locks: &LockManager, url: &str, account: usize, blind: bool) -> Self {
        let mut user = User::connect(url).await;
        let key = format!("account:{account}");
        let begin = user.begin(LEVELS[account / 4 % 3]);
        let (before, after) = match account % 4 {
            0 => (true, false),
            1 => (false, true),
            2 => (true, true),
            _ => (!blind, false),
        };
        let (guard, assert) = loop {
            let guard = locks.lock(&*key).ttl(TTL).wait_forever().acquire().await;
            let guard = guard.expect("the lock");
            let assert = user.assertion(&key, guard.fencing_token());
            user.rows(&begin).await;
            if !before || user.try_rows(&assert).await.is_ok() {
                break (guard, assert);
            }
            // A renewal behind the snapshot is a concurrent update, and on a busy machine the lease may have ended.
            user.rows("ROLLBACK").await;
        };
        let read = format!("SELECT balance FROM account WHERE id = {account}");
        let seen = user.numbers(&read).await[0];
        Self {
            account,
            user,
            assertion: after.then_some(assert),
            seen,
            _guard: guard,
        }
    }

    /// Which account it was, and whether it was committed.
    async fn finish(mut self) -> (usize, Result<(), SqlError>) {
        let outcome = self.write().await;
        if outcome.is_err() {
            let _ = self.user.try_rows("ROLLBACK").await;
        }
        (self.account, outcome)
    }

    async fn write(&mut self) -> Result<(), SqlError> {
        if let Some(assertion) = &self.assertion {
            self.user.try_rows(assertion).await?;
        }
        let write = format!(
            "UPDATE account SET balance = {} WHERE id = {}",
            self.seen + 1,
            self.account
        );
        self.user.try_rows(&write).await?;
        self.user.try_rows("COMMIT").await.map(drop)
    }
}

//! Balances that are changed in transactions which assert their fences: no change is lost, even if two callers believe that
//! they hold the lock.

use std::time::Duration;

use lock_runtime::{FencingToken, LockManager};
use tokio::time::sleep;

use super::{TTL, load::WAIT};
use crate::{SqlError, User};

/// How many tasks of each process change balances.
pub(super) const TASKS: usize = 8;
/// How many balances there are.
const ACCOUNTS: usize = 4;

/// Makes the balances, and a table with a row for each change.
pub(super) async fn open_accounts(url: &str) {
    let mut user = User::connect(url).await;
    user.rows(
        "CREATE TABLE account (id int PRIMARY KEY, balance bigint); CREATE TABLE entry (account int)",
    )
    .await;
    for account in 1..=ACCOUNTS {
        user.rows(&format!("INSERT INTO account VALUES ({account}, 0)"))
            .await;
    }
}

/// Describes balances that differ from the number of their changes, and balances that never changed.
pub(super) async fn check_accounts(url: &str) -> Vec<String> {
    let mut user = User::connect(url).await;
    let mut wrong = Vec::new();
    for account in 1..=ACCOUNTS {
        let balance = format!("SELECT balance FROM account WHERE id = {account}");
        let changes = format!("SELECT count(*) FROM entry WHERE account = {account}");
        let (balance, changes) = (user.numbers(&balance).await, user.numbers(&changes).await);
        if balance != changes || changes == [0] {
            wrong.push(format!(
                "account {account}: {changes:?} changes, balance {balance:?}"
            ));
        }
    }
    wrong
}

/// Changes balances, one after the other, until the process ends.
pub(super) async fn transfer(locks: LockManager, url: String) {
    let mut user = User::connect(&url).await;
    loop {
        let account = fastrand::usize(1..=ACCOUNTS);
        let lock = locks.lock(format!("account-{account}")).wait(WAIT);
        let Ok(guard) = lock.acquire().await else {
            continue;
        };
        if change(&mut user, account, guard.fencing_token())
            .await
            .is_err()
            && user.try_rows("ROLLBACK").await.is_err()
        {
            user = User::connect(&url).await;
        }
    }
}

/// Adds one to a balance; the transaction may outlast the lease.
async fn change(user: &mut User, account: usize, fence: FencingToken) -> Result<(), SqlError> {
    let assertion = user.assertion(&format!("account-{account}"), fence);
    user.try_rows("BEGIN").await?;
    user.try_rows(&assertion).await?;
    let read = format!("SELECT balance + 1 FROM account WHERE id = {account}");
    let sum = user
        .try_rows(&read)
        .await?
        .remove(0)
        .remove(0)
        .expect("a balance");
    let pause: Duration = TTL.mul_f64(fastrand::f64().powi(4));
    sleep(pause).await;
    user.try_rows(&format!(
        "UPDATE account SET balance = {sum} WHERE id = {account}; INSERT INTO entry VALUES ({account}); COMMIT"
    ))
    .await
    .map(drop)
}

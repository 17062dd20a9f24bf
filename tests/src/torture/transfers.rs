//! Balances that are changed in transactions which assert their fences: no change is lost, even if two callers believe that
//! they hold the lock.

use std::{net::SocketAddr, time::Duration};

use lock_runtime::{FencingToken, LockManager};
use tokio::time::sleep;

use super::{TTL, load::WAIT};
use crate::{PostgresPeer, PostgresServer, SCHEMA, SqlError};

/// How many tasks of each process change balances.
pub(super) const TASKS: usize = 8;
/// How many balances there are.
const ACCOUNTS: usize = 4;

/// Makes the balances, and a log with a row for each change.
pub(super) async fn open_accounts(server: &PostgresServer) {
    server
        .cmd(&format!(
            "CREATE TABLE account (id int PRIMARY KEY, balance int8); CREATE TABLE change (account int); \
             INSERT INTO account SELECT id, 0 FROM generate_series(1, {ACCOUNTS}) id"
        ))
        .await;
}

/// Describes balances that differ from the number of their changes, and balances that never changed.
pub(super) async fn check_accounts(server: &PostgresServer) -> Vec<String> {
    let all = "SELECT id, balance, (SELECT count(*) FROM change WHERE account = id) FROM account";
    let accounts = server.peer().await.rows(all).await;
    let number = |text: &Option<String>| -> i64 {
        let number = text.as_ref().and_then(|it| it.parse().ok());
        number.expect("a number")
    };
    let mut wrong = Vec::new();
    for account in &accounts {
        let [id, balance, changes] = [0, 1, 2].map(|column| number(&account[column]));
        if balance != changes || changes == 0 {
            wrong.push(format!(
                "account {id}: {changes} changes, balance {balance}"
            ));
        }
    }
    wrong
}

/// The first server of a URL.
pub(super) fn server(url: &str) -> SocketAddr {
    let hosts = url.split(['@', ',', '/']).filter_map(|it| it.parse().ok());
    hosts.into_iter().next().expect("an address")
}

/// Changes balances, one after the other, until the process ends.
pub(super) async fn transfer(locks: LockManager, server: SocketAddr) {
    let mut user = PostgresPeer::connect(server).await;
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
            user = PostgresPeer::connect(server).await;
        }
    }
}

/// Adds one to a balance; the transaction may outlast the lease.
async fn change(
    user: &mut PostgresPeer,
    account: usize,
    fence: FencingToken,
) -> Result<(), SqlError> {
    let assert = format!("SELECT {SCHEMA}.assert_fence('account-{account}', {fence})");
    user.try_rows("BEGIN").await?;
    user.try_rows(&assert).await?;
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
        "UPDATE account SET balance = {sum} WHERE id = {account}; INSERT INTO change VALUES ({account}); COMMIT"
    ))
    .await
    .map(drop)
}

//! Holders that stop past their leases in the middle of a transaction: with an asserted fence, no balance loses a change.

use std::{collections::HashMap, time::Duration};

use lock_runtime::LockManager;
use tokio::{task::JoinSet, time::sleep};

use crate::{LONG, TIME_LIMIT, User, Worker, connect, within};

/// How many stop at once.
const ACCOUNTS: usize = 60;
/// Longer than the leases.
const STOP: Duration = Duration::from_millis(700);

/// What became of holders that had stopped, and of their accounts.
#[derive(Debug, Default)]
struct Seen {
    committed: usize,
    refused: HashMap<String, usize>,
    /// Changes that were committed, and are not in the balance.
    lost: i64,
}

/// Sixty holders of one process stop in the middle of their transactions, and others change the same balances meanwhile.
async fn stop(url: &str, worker: &str, assertions: &str, seen: &mut Seen) {
    let mut administrator = User::connect(url).await;
    let rows: Vec<_> = (0..ACCOUNTS).map(|it| format!("({it}, 0)")).collect();
    administrator
        .rows(&format!(
            "DROP TABLE IF EXISTS account; CREATE TABLE account (id int PRIMARY KEY, balance int); \
             INSERT INTO account VALUES {}",
            rows.join(", ")
        ))
        .await;
    let locks = connect(url).await;
    let count = ACCOUNTS.to_string();
    let mut late = Worker::spawn(worker, ["transfers", url, &count]).await;
    late.send(assertions).await;
    assert_eq!(late.line().await, "ready");
    late.pause();
    let mut others = JoinSet::new();
    for account in 0..ACCOUNTS {
        let user = User::connect(url).await;
        others.spawn(change(locks.clone(), user, account));
    }
    sleep(STOP).await;
    late.send("go").await;
    late.resume();
    let mut changes = [1_i64; ACCOUNTS];
    loop {
        let line = late.line().await;
        let Some((account, outcome)) = line.split_once(' ') else {
            assert_eq!(line, "done");
            break;
        };
        if outcome == "committed" {
            changes[account.parse::<usize>().expect("a number")] += 1;
            seen.committed += 1;
        } else {
            *seen.refused.entry(outcome.to_owned()).or_default() += 1;
        }
    }
    within(TIME_LIMIT, others.join_all()).await;
    let balances = administrator
        .numbers("SELECT balance FROM account ORDER BY id")
        .await;
    for (balance, changes) in balances.iter().zip(changes) {
        seen.lost += changes - balance;
    }
    locks.shutdown().await;
}

/// Adds one to a balance under its lock.
async fn change(locks: LockManager, mut user: User, account: usize) {
    let key = format!("account:{account}");
    let guard = locks.lock(&*key).ttl(LONG).wait_forever().acquire().await;
    let guard = guard.expect("the lock");
    let assertion = user.assertion(&key, guard.fencing_token());
    user.rows("BEGIN").await;
    user.rows(&assertion).await;
    let read = format!("SELECT balance FROM account WHERE id = {account}");
    let sum = user.numbers(&read).await[0] + 1;
    user.rows(&format!(
        "UPDATE account SET balance = {sum} WHERE id = {account}; COMMIT"
    ))
    .await;
    drop(guard);
}

/// So many times sixty holders stop; none commits beside the next one. `worker` is the program.
pub async fn commit_nothing(url: &str, worker: &str, times: usize) {
    let mut seen = Seen::default();
    for _ in 0..times {
        stop(url, worker, "assert", &mut seen).await;
    }
    println!("{} holders stopped: {seen:?}", times * ACCOUNTS);
    assert_eq!(seen.lost, 0, "{seen:?}");
    // Those that asserted before the stop are in time; those that assert only afterwards are too late, but for a few whose
    // successors were late too.
    assert!(seen.committed >= times * ACCOUNTS / 2, "{seen:?}");
    let refused: usize = seen.refused.values().sum();
    assert!(refused >= times * ACCOUNTS / 5, "{seen:?}");
    let codes = ["LR001", "40001"];
    assert!(
        seen.refused.keys().all(|it| codes.contains(&&**it)),
        "{seen:?}"
    );
    // What the assertions are for, and a check of the test.
    let mut blind = Seen::default();
    stop(url, worker, "blind", &mut blind).await;
    assert!(blind.lost > 0, "{blind:?}");
}

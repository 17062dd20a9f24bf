//! Calls that are carried out together keep what each of them promises.
//!
//! Section: mysql.md#what-it-promises

use std::{fmt::Write as _, time::Duration};

use tests::{MysqlPeer, MysqlServer, connect};
use tokio::time::sleep;

use crate::server;

/// Longer than a test.
const LONG: u32 = 60_000;

/// A server with the procedures, and a connection to it.
async fn scene() -> Option<(MysqlServer, MysqlPeer)> {
    let server = server().await?;
    drop(connect(&*server.url()).await);
    let peer = server.peer().await;
    Some((server, peer))
}

/// Carries out calls, which are sorted by key: what each does, its key, its token and its ttl. Returns the status and the
/// fence of each.
async fn many(peer: &mut MysqlPeer, calls: &[(char, &str, u8, u32)]) -> Vec<(String, u64)> {
    let mut last = "";
    let calls: Vec<_> = calls
        .iter()
        .zip(1..)
        .map(|((action, key, token, ttl), number)| {
            let first = u8::from(*key != last);
            last = key;
            let name = digits(&name(key));
            format!("[{number},\"{action}\",\"{name}\",\"{token:032x}\",{ttl},\"77\",{first}]")
        })
        .collect();
    let session = session();
    let sql = format!(
        "CALL lock_runtime_many('[{}]', {session}, 0)",
        calls.join(",")
    );
    let mut rows = peer.rows(&sql).await;
    rows.sort_by_key(|row| row[8].as_ref().map(|it| it.parse::<usize>().unwrap()));
    assert_eq!(rows.len(), calls.len(), "{rows:?}");
    let reply = |row: Vec<Option<String>>| {
        let fence = row[1].as_ref().map_or(0, |it| it.parse().unwrap());
        (row[0].clone().unwrap(), fence)
    };
    rows.into_iter().map(reply).collect()
}

/// As two digits a byte.
fn digits(text: &str) -> String {
    text.bytes().fold(String::new(), |mut digits, byte| {
        // Writing into a text does not fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

fn name(key: &str) -> String {
    format!("lock:{{{key}}}")
}

fn session() -> String {
    format!("x'{:032x}'", 9)
}

/// The statuses alone.
fn statuses(replies: &[(String, u64)]) -> Vec<&str> {
    replies.iter().map(|(status, _)| &**status).collect()
}

/// Has the locks made, and released: the first call of a lock makes its row.
async fn make(peer: &mut MysqlPeer, keys: &[&str]) {
    for action in ['x', '-'] {
        let calls: Vec<_> = keys.iter().map(|key| (action, *key, 1, LONG)).collect();
        many(peer, &calls).await;
    }
}

async fn join(peer: &mut MysqlPeer, key: &str, token: u8) {
    let (name, session) = (name(key), session());
    let sql = format!(
        "CALL lock_runtime_acquire('{name}', x'{token:032x}', '', 'x', {LONG}, {session}, 1, NULL, NULL, 0)"
    );
    assert_eq!(peer.value(&sql).await, "waiting");
}

#[tokio::test]
async fn free_locks_are_granted_together_and_released_together() {
    let Some((_server, mut peer)) = scene().await else {
        return;
    };
    make(&mut peer, &["a", "b"]).await;
    let mut last = 0;
    for _ in 0..3 {
        let granted = many(&mut peer, &[('x', "a", 2, LONG), ('x', "b", 3, LONG)]).await;
        assert_eq!(statuses(&granted), ["granted"; 2]);
        assert!(granted[0].1 > last);
        last = granted[0].1;
        let stranger = many(&mut peer, &[('-', "a", 9, LONG), ('-', "b", 9, LONG)]).await;
        assert_eq!(statuses(&stranger), ["not ours"; 2]);
        // The one is released while the other is asked for by somebody else.
        let mixed = many(&mut peer, &[('-', "a", 2, LONG), ('x', "b", 4, LONG)]).await;
        assert_eq!(statuses(&mixed), ["ours", "waiting"]);
        let rest = many(&mut peer, &[('-', "a", 2, LONG), ('-', "b", 3, LONG)]).await;
        assert_eq!(statuses(&rest), ["not ours", "ours"]);
        // It was handed to the waiter.
        let rest = many(&mut peer, &[('-', "b", 4, LONG)]).await;
        assert_eq!(statuses(&rest), ["ours"]);
    }
}

#[tokio::test]
async fn calls_about_one_lock_keep_their_order() {
    let Some((_server, mut peer)) = scene().await else {
        return;
    };
    make(&mut peer, &["key"]).await;
    let calls = [
        ('x', "key", 2, LONG),
        ('-', "key", 2, LONG),
        ('x', "key", 3, LONG),
        ('-', "key", 2, LONG),
    ];
    let replies = many(&mut peer, &calls).await;
    assert_eq!(
        statuses(&replies),
        ["granted", "ours", "granted", "not ours"]
    );
    assert!(replies[2].1 > replies[0].1, "{replies:?}");
}

// Section: guarantees.md#first-come-first-served
#[tokio::test]
async fn a_newcomer_in_a_batch_passes_nobody_who_waits() {
    const SHORT: u32 = 300;
    let Some((_server, mut peer)) = scene().await else {
        return;
    };
    make(&mut peer, &["key"]).await;
    many(&mut peer, &[('x', "key", 2, SHORT)]).await;
    join(&mut peer, "key", 3).await;
    // Nobody has served the queue since the lease has ended.
    sleep(Duration::from_millis(u64::from(SHORT) + 100)).await;
    let newcomer = many(&mut peer, &[('x', "key", 4, LONG)]).await;
    assert_eq!(statuses(&newcomer), ["waiting"]);
    let late = many(&mut peer, &[('-', "key", 2, LONG)]).await;
    assert_eq!(statuses(&late), ["not ours"]);
    let first = many(&mut peer, &[('-', "key", 3, LONG)]).await;
    assert_eq!(statuses(&first), ["ours"]);
}

// Section: guarantees.md#fencing-tokens-grow
#[tokio::test]
async fn an_open_transaction_that_asserted_its_fence_keeps_batches_out() {
    let Some((server, mut peer)) = scene().await else {
        return;
    };
    make(&mut peer, &["a", "b"]).await;
    let mut user = server.peer().await;
    let granted = many(&mut peer, &[('x', "a", 2, LONG)]).await;
    let fence = granted[0].1;
    user.rows(&format!(
        "START TRANSACTION; CALL lock_runtime_assert_fence('a', {fence}, 'lock')"
    ))
    .await;
    many(&mut peer, &[('-', "a", 2, LONG)]).await;
    let both = many(&mut peer, &[('x', "a", 3, LONG), ('x', "b", 4, LONG)]).await;
    assert_eq!(statuses(&both), ["waiting", "granted"]);
    user.rows("COMMIT").await;
    // Any call about the lock hands it to the one who waits, who then releases it.
    for status in ["not ours", "ours"] {
        let released = many(&mut peer, &[('-', "a", 3, LONG)]).await;
        assert_eq!(statuses(&released), [status]);
    }
    let next = many(&mut peer, &[('x', "a", 5, LONG)]).await;
    assert_eq!(statuses(&next), ["granted"]);
    // The guard is written by batches too.
    let late = format!("CALL lock_runtime_assert_fence('a', {fence}, 'lock')");
    assert_eq!(user.try_rows(&late).await.unwrap_err().state, "LR001");
}

/// A list of numbers that is cut short would end with the number of another call.
// Section: guarantees.md#one-holder-at-a-time
#[tokio::test]
async fn a_short_limit_of_lists_grants_nothing_that_is_held() {
    let Some((_server, mut peer)) = scene().await else {
        return;
    };
    let keys: Vec<_> = (1..=15).map(|number| format!("key{number:02}")).collect();
    let keys: Vec<_> = keys.iter().map(String::as_str).collect();
    make(&mut peer, &keys).await;
    let calls = keys[..9].iter().zip(2..);
    let held: Vec<_> = calls.map(|(key, token)| ('x', *key, token, LONG)).collect();
    many(&mut peer, &held).await;
    peer.rows("SET SESSION group_concat_max_len = 16").await;
    let calls = keys.iter().zip(21..);
    let all: Vec<_> = calls.map(|(key, token)| ('x', *key, token, LONG)).collect();
    let replies = many(&mut peer, &all).await;
    let (waiting, granted) = replies.split_at(held.len());
    assert_eq!(statuses(waiting), ["waiting"; 9]);
    assert_eq!(statuses(granted), ["granted"; 6]);
}

//! Rows that nobody has used for long are deleted, a page at a time, and nobody waits for that.
//!
//! Section: mysql.md#settings-of-the-server

use tests::{MysqlPeer, MysqlServer, connect, release};

use crate::{row_of, server};

/// A server with the rows of locks that nobody has used for long, and a connection to it.
async fn scene() -> Option<(MysqlServer, MysqlPeer)> {
    let server = server().await?;
    // A manager sweeps at a random time of its first minute.
    let installing = connect(&*server.url()).await;
    installing.shutdown().await;
    drop(installing);
    let mut peer = server.peer().await;
    let names: Vec<_> = ["a", "b", "c", "d", "e", "f"]
        .iter()
        .map(|key| format!("('lock:{{{key}}}')"))
        .collect();
    for table in ["lock", "guard"] {
        let sql = format!(
            "INSERT INTO lock_runtime_{table} (name) VALUES {}",
            names.join(",")
        );
        peer.rows(&sql).await;
    }
    Some((server, peer))
}

/// Deletes among five names behind this one; the name behind which to go on.
async fn sweep(peer: &mut MysqlPeer, after: &str) -> Option<String> {
    let sql = format!("CALL lock_runtime_sweep('{after}', 5)");
    peer.rows(&sql).await[0][0].clone()
}

/// The keys of the locks in a table.
async fn keys(peer: &mut MysqlPeer, table: &str) -> String {
    let sql = format!("SELECT DISTINCT name FROM lock_runtime_{table} ORDER BY name");
    let names = peer.column(&sql).await;
    let key = |name: &str| {
        let key = name.strip_prefix("lock:{")?.strip_suffix('}')?;
        Some(key.to_owned())
    };
    let keys = names.iter().map(|it| key(it).unwrap());
    keys.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn one_call_deletes_one_page_and_the_next_one_goes_on() {
    let Some((_server, mut peer)) = scene().await else {
        return;
    };
    let held =
        "UPDATE lock_runtime_lock SET expires = UNIX_TIMESTAMP() * 1000000 WHERE name = 'lock:{b}'";
    peer.rows(held).await;
    let next = sweep(&mut peer, "").await;
    assert_eq!(next.as_deref(), Some("lock:{e}"));
    for table in ["lock", "guard"] {
        assert_eq!(keys(&mut peer, table).await, "b f", "{table}");
    }
    assert_eq!(sweep(&mut peer, "lock:{e}").await, None);
    assert_eq!(keys(&mut peer, "lock").await, "b");
}

#[tokio::test]
async fn a_lock_that_somebody_uses_is_left_alone_at_once() {
    let Some((server, mut peer)) = scene().await else {
        return;
    };
    let mut taken = row_of(&server, "a").await;
    let mut user = server.peer().await;
    user.rows("START TRANSACTION; CALL lock_runtime_assert_fence('c', 0, 'lock')")
        .await;
    // It fails if it waits for one of them.
    peer.rows("SET SESSION innodb_lock_wait_timeout = 1").await;
    sweep(&mut peer, "").await;
    assert_eq!(keys(&mut peer, "lock").await, "a c f");
    taken.rows("COMMIT").await;
    user.rows("COMMIT").await;
    assert_eq!(sweep(&mut peer, "").await, None);
    assert_eq!(keys(&mut peer, "lock").await, "");
}

#[tokio::test]
async fn histories_are_forgotten_once_their_last_grant_is_old() {
    let Some((_server, mut peer)) = scene().await else {
        return;
    };
    for (key, fence, since) in [
        ("a", 1, "0"),
        ("a", 2, "0"),
        ("g", 1, "0"),
        ("g", 2, "UNIX_TIMESTAMP() * 1000000"),
        ("h", 1, "0"),
    ] {
        let sql = format!(
            "INSERT INTO lock_runtime_history (name, fence, token, who, kind, since) \
             VALUES ('lock:{{{key}}}', {fence}, x'{fence:032x}', '', 'x', {since})"
        );
        peer.rows(&sql).await;
    }
    let next = sweep(&mut peer, "").await;
    assert_eq!(next.as_deref(), Some("lock:{e}"));
    assert_eq!(keys(&mut peer, "history").await, "g h");
    assert_eq!(sweep(&mut peer, "lock:{e}").await, None);
    assert_eq!(keys(&mut peer, "history").await, "g");
    let grants = "SELECT COUNT(*) FROM lock_runtime_history";
    assert_eq!(peer.value(grants).await, "2");
}

#[tokio::test]
async fn a_replica_deletes_and_writes_nothing() {
    let Some((_server, mut peer)) = scene().await else {
        return;
    };
    peer.rows("SET GLOBAL read_only = ON").await;
    for call in [
        "sweep('', 5)",
        "ask_to_yield('lock:{a}')",
        "status('lock:{a}', '')",
    ] {
        let refused = peer.try_rows(&format!("CALL lock_runtime_{call}")).await;
        let error = refused.expect_err(call);
        assert_eq!(error.state, "25006", "{error}");
    }
    assert_eq!(keys(&mut peer, "lock").await, "a b c d e f");
}

/// Even if readers overlap for ever, so that their lock is never free.
#[tokio::test]
async fn those_who_share_a_lock_leave_no_rows_while_others_go_on() {
    let Some(server) = server().await else { return };
    let locks = connect(&*server.url()).await;
    let mut peer = server.peer().await;
    let first = locks.lock("key").read().acquire().await.unwrap();
    for _ in 0..400 {
        let guard = locks.lock("key").read().acquire().await.unwrap();
        release(guard).await;
    }
    let rows = "SELECT COUNT(*) FROM lock_runtime_entered";
    let rows = peer.value(rows).await;
    assert!(rows.parse::<u32>().unwrap() < 300, "{rows}");
    let fence = first.fencing_token();
    let assert = format!("CALL lock_runtime_assert_fence('key', {fence}, 'lock')");
    peer.rows(&assert).await;
}

#[tokio::test]
async fn nobody_waits_for_the_transaction_of_a_reader_that_has_gone() {
    let Some(server) = server().await else { return };
    let locks = connect(&*server.url()).await;
    let first = locks.lock("key").read().acquire().await.unwrap();
    let asserted = locks.lock("key").read().acquire().await.unwrap();
    let fence = asserted.fencing_token();
    let (mut user, mut peer) = (server.peer().await, server.peer().await);
    user.rows(&format!(
        "START TRANSACTION; CALL lock_runtime_assert_fence('key', {fence}, 'lock')"
    ))
    .await;
    release(asserted).await;
    // It fails if it waits.
    peer.rows("SET SESSION innodb_lock_wait_timeout = 1").await;
    let forget = "CALL lock_runtime_forget_entered('lock:{key}')";
    let count = "SELECT COUNT(*) FROM lock_runtime_entered";
    peer.rows(forget).await;
    assert_eq!(peer.value(count).await, "2");
    user.rows("COMMIT").await;
    peer.rows(forget).await;
    assert_eq!(peer.value(count).await, "1");
    release(first).await;
}

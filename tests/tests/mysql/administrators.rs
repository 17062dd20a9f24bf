//! What administrators do to a server that is in use: statements that they cancel, rows that they delete, a server that they
//! make a replica, settings that they change.
//!
//! Section: mysql.md#what-it-promises

use std::time::Duration;

use lock_runtime::{LockConfig, LockError, LockManager};
use tests::{
    LONG, MysqlServer, Proxy, TIME_LIMIT, connect, eventually, mysql_script, mysql_statements,
    poll_once, release, take, take_turn, within,
};

use crate::{row_of, server, waits_for_a_row};

/// The connections of managers.
const CONNECTIONS: &str =
    "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = 'shop' AND ID <> CONNECTION_ID()";

/// A procedure for batches that stays in front of its `COMMIT`, and says so by a lock of the server.
fn slow_batches() -> String {
    let script = mysql_script();
    let mut statements = script.split("\n//\n");
    let many = statements.find(|it| it.contains("CREATE PROCEDURE lock_runtime_many("));
    let stay = "DO GET_LOCK('halfway', 0); SET v_ttl = 0; WHILE v_ttl < 2000000000 DO SET v_ttl = v_ttl + 1; END WHILE; COMMIT;";
    many.unwrap().replace("COMMIT;", stay)
}

/// No handler of the procedure undoes what it has done.
#[tokio::test]
async fn a_batch_that_is_cancelled_halfway_leaves_nothing() {
    let Some(server) = server().await else { return };
    let mut proxy = Proxy::start(server.addr());
    let config = LockConfig::new(server.url_at(proxy.addr())).unwrap();
    let locks = connect(config.unavailable_wait_forever()).await;
    for key in ["a", "b", "warm"] {
        take_turn(&locks, key).await;
    }
    let manager = server.cmd(CONNECTIONS).await.remove(0);
    server.cmd("DROP PROCEDURE lock_runtime_many").await;
    server.cmd(&slow_batches()).await;
    let acquire = |key| locks.lock(key).ttl(LONG).wait_forever().acquire();
    let [mut warm, mut a, mut b] = ["warm", "a", "b"].map(acquire);
    proxy.requests().hold();
    assert!(poll_once(&mut warm).await.is_pending());
    within(TIME_LIMIT, proxy.requests().held()).await;
    // They go in one batch.
    assert!(poll_once(&mut a).await.is_pending());
    assert!(poll_once(&mut b).await.is_pending());
    proxy.requests().pass();
    let warm = within(TIME_LIMIT, warm).await.unwrap();
    let halfway = "SELECT IS_USED_LOCK('halfway')";
    eventually(TIME_LIMIT, async || {
        server.cmd(halfway).await == [&*manager]
    })
    .await;
    proxy.refuse().await;
    server.cmd(&format!("KILL QUERY {manager}")).await;
    let gone = async || !server.cmd(CONNECTIONS).await.contains(&manager);
    eventually(TIME_LIMIT, gone).await;
    let token =
        "SELECT COALESCE(HEX(token), 'nobody') FROM lock_runtime_lock WHERE name = 'lock:{a}'";
    assert_eq!(server.cmd(token).await, ["nobody"]);
    install(&server).await;
    proxy.admit();
    for guard in [within(TIME_LIMIT, a).await, within(TIME_LIMIT, b).await] {
        release(guard.unwrap()).await;
    }
    release(warm).await;
}

/// Procedures have the rights of their owner, whom a server that only reads may let write.
#[tokio::test]
async fn a_server_that_begins_to_only_read_grants_nothing_more() {
    let Some(server) = server().await else { return };
    server.cmd("CREATE USER shop@'127.0.0.1'").await;
    server
        .cmd("GRANT EXECUTE ON shop.* TO shop@'127.0.0.1'")
        .await;
    install(&server).await;
    let locks = connect(&*format!("mysql://shop@{}/shop", server.addr())).await;
    let guard = take(&locks, "key", LONG).await;
    server.cmd("SET GLOBAL read_only = ON").await;
    let acquire = locks.lock("other").wait(Duration::from_secs(1)).acquire();
    match within(TIME_LIMIT, acquire).await {
        Err(error @ LockError::Unavailable { .. }) => {
            assert!(error.to_string().contains("only reads"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(guard.is_held());
    server.cmd("SET GLOBAL read_only = OFF").await;
    take_turn(&locks, "other").await;
    release(guard).await;
}

/// The next primary may lack the grant of this call.
#[tokio::test]
async fn a_call_that_waits_while_its_server_begins_to_only_read_is_granted_nothing() {
    let Some(server) = server().await else { return };
    let locks = connect(&*server.url()).await;
    take_turn(&locks, "key").await;
    let mut row = row_of(&server, "key").await;
    let acquire = locks.lock("key").ttl(LONG).wait(Duration::from_secs(2));
    let acquire = tokio::spawn(acquire.acquire());
    waits_for_a_row(&server, 1).await;
    let mut administrator = server.peer().await;
    // It waits for the statement that waits for the row.
    let read_only = tokio::spawn(async move {
        administrator.rows("SET GLOBAL read_only = ON").await;
    });
    let waits =
        "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SET GLOBAL read_only%'";
    eventually(TIME_LIMIT, async || !server.cmd(waits).await.is_empty()).await;
    row.rows("COMMIT").await;
    match within(TIME_LIMIT, acquire).await.unwrap() {
        Err(error @ LockError::Unavailable { .. }) => {
            assert!(error.to_string().contains("only reads"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    within(TIME_LIMIT, read_only).await.unwrap();
    server.cmd("SET GLOBAL read_only = OFF").await;
    take_turn(&locks, "key").await;
}

/// MariaDB ends the wait of an installer without an error.
#[tokio::test]
async fn nobody_installs_procedures_beside_somebody_else() {
    let Some(server) = server().await else { return };
    let mut installer = server.peer().await;
    let turn = "SELECT GET_LOCK(LEFT(CONCAT('lock_runtime:', SHA2(DATABASE(), 256)), 64), 0)";
    assert_eq!(installer.value(turn).await, "1");
    let config = LockConfig::new(server.url()).unwrap();
    let config = config.connect_timeout(TIME_LIMIT);
    let connecting = tokio::spawn(LockManager::connect(config));
    let waits =
        "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT GET_LOCK(LEFT%'";
    eventually(TIME_LIMIT, async || !server.cmd(waits).await.is_empty()).await;
    let first = server.cmd(waits).await.remove(0);
    server.cmd(&format!("KILL QUERY {first}")).await;
    let another = async || server.cmd(waits).await.iter().any(|it| *it != first);
    eventually(TIME_LIMIT, another).await;
    let tables = "SHOW TABLES LIKE 'lock_runtime_lock'";
    assert!(server.cmd(tables).await.is_empty());
    drop(installer);
    let locks = within(TIME_LIMIT, connecting).await.unwrap().unwrap();
    take_turn(&locks, "key").await;
}

async fn install(server: &MysqlServer) {
    let mut peer = server.peer().await;
    for statement in mysql_statements() {
        peer.rows(&statement).await;
    }
}

#[tokio::test]
async fn a_newer_version_is_not_replaced() {
    let Some(server) = server().await else { return };
    install(&server).await;
    let mut peer = server.peer().await;
    peer.rows("UPDATE lock_runtime_meta SET version = 1000; DROP PROCEDURE lock_runtime_force")
        .await;
    let mut refused = None;
    for statement in mysql_statements() {
        if let Err(error) = peer.try_rows(&statement).await {
            refused = Some(error);
            break;
        }
    }
    assert_eq!(refused.unwrap().state, "LR002");
    let replaced = "SHOW PROCEDURE STATUS LIKE 'lock_runtime_force'";
    assert!(peer.column(replaced).await.is_empty());
}

#[tokio::test]
async fn rows_that_are_deleted_cost_their_holders_the_lock_and_nobody_else() {
    let Some(server) = server().await else { return };
    let [ours, theirs] = [connect(&*server.url()).await, connect(&*server.url()).await];
    let tables = ["lock", "guard", "sharer", "waiter"];
    for name in tables {
        for words in ["DELETE FROM", "TRUNCATE"] {
            let guard = take(&ours, "key", LONG).await;
            let fence = guard.fencing_token().get();
            server.cmd(&format!("{words} lock_runtime_{name}")).await;
            if name == "lock" {
                within(TIME_LIMIT, guard.lost()).await;
            } else {
                release(guard).await;
            }
            assert!(take_turn(&theirs, "key").await > fence, "{words} {name}");
        }
    }
}

#[tokio::test]
async fn settings_of_the_server_do_not_reach_its_locks() {
    let Some(server) = server().await else { return };
    for setting in [
        "autocommit = OFF",
        "completion_type = 'CHAIN'",
        "tx_read_only = ON",
        "transaction_read_only = ON",
        "tx_isolation = 'SERIALIZABLE'",
        "transaction_isolation = 'SERIALIZABLE'",
        "sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,IGNORE_SPACE,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH'",
        "time_zone = '+05:00'",
        "sql_select_limit = 1",
        "innodb_lock_wait_timeout = 100",
        "wait_timeout = 1",
        "character_set_server = 'utf16'",
        "collation_connection = 'latin1_german2_ci'",
        // Sessions of the test have it too.
        "max_statement_time = 0.001",
    ] {
        let set = format!("SET GLOBAL {setting}");
        // MySQL and MariaDB each lack some.
        if server.peer().await.try_rows(&set).await.is_err() {
            continue;
        }
        let [ours, theirs] = [connect(&*server.url()).await, connect(&*server.url()).await];
        let guard = take(&ours, "key", LONG).await;
        let tried = theirs.lock("key").try_once().acquire();
        let tried = within(TIME_LIMIT, tried).await;
        assert!(
            matches!(tried, Err(LockError::Contended { .. })),
            "{setting}: {tried:?}"
        );
        let left = theirs.status("key").await.unwrap().holders[0].remaining;
        assert!(left.unwrap() > LONG / 2, "{setting}");
        let other = take(&ours, "other", LONG).await;
        assert_eq!(theirs.list("*").await.unwrap().len(), 2, "{setting}");
        release(guard).await;
        release(other).await;
    }
}

//! PostgreSQL servers do what the other tests build on.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use tests::{Authority, PgBouncer, PostgresPeer, PostgresServer, TIME_LIMIT, within};
use tokio::time::timeout;

const TEST: &str = "tests/support_postgres";

#[tokio::test]
async fn a_server_answers_and_keeps_its_data_through_a_crash_and_a_restart() {
    let Some(mut server) = PostgresServer::start(TEST).await else {
        return;
    };
    let mut peer = server.peer().await;
    peer.rows("CREATE TABLE t (a int, b text)").await;
    peer.rows("INSERT INTO t VALUES (1, 'one'), (2, NULL)")
        .await;
    let rows = peer.rows("SELECT a, b FROM t ORDER BY a").await;
    assert_eq!(rows[0], [Some("1".to_owned()), Some("one".to_owned())]);
    assert_eq!(rows[1], [Some("2".to_owned()), None]);
    let error = peer.try_rows("SELECT 1/0").await.unwrap_err();
    assert_eq!(error.code, "22012");

    server.restart().await;
    assert_eq!(peer.try_rows("SELECT 1").await.unwrap_err().code, "08006");
    assert_eq!(server.cmd("SELECT count(*) FROM t").await, ["2"]);
    server.restart_cleanly().await;
    assert_eq!(server.cmd("SELECT count(*) FROM t").await, ["2"]);
}

#[tokio::test]
async fn a_server_that_is_dropped_leaves_nothing() {
    let Some(mut server) = PostgresServer::start(TEST).await else {
        return;
    };
    let pid = Pid::from_raw(server.pid().cast_signed()).unwrap();
    let directory = server.socket_directory().to_owned();
    let peer = server.peer().await;
    server.stop();
    drop(server);
    assert!(test_kill_process(pid).is_err());
    assert!(!directory.exists());
    drop(peer);
}

#[tokio::test]
async fn a_stopped_server_answers_when_it_goes_on() {
    let Some(mut server) = PostgresServer::start(TEST).await else {
        return;
    };
    let mut peer = server.peer().await;
    server.stop();
    let mut asking = Box::pin(peer.rows("SELECT 1"));
    assert!(
        timeout(Duration::from_millis(300), &mut asking)
            .await
            .is_err()
    );
    server.resume();
    within(TIME_LIMIT, asking).await;
    server.stop();
    server.kill().await;
    server.restart().await;
    assert_eq!(server.cmd("SELECT 1").await, ["1"]);
}

#[tokio::test]
async fn a_standby_follows_and_takes_the_place_of_its_primary() {
    let Some(mut server) = PostgresServer::start(TEST).await else {
        return;
    };
    let standby = server.standby().await;
    server.cmd("CREATE TABLE t AS SELECT 1 AS a").await;
    server.is_copied_to(&standby).await;
    assert_eq!(standby.cmd("SELECT a FROM t").await, ["1"]);
    let refused = standby.peer().await.try_rows("CREATE TABLE u ()").await;
    assert_eq!(refused.unwrap_err().code, "25006");
    server.kill().await;
    standby.promote().await;
    standby.cmd("INSERT INTO t VALUES (2)").await;
}

#[tokio::test]
async fn connections_can_be_ended_and_refused() {
    let builder = PostgresServer::builder().access("host all nobody 127.0.0.1/32 reject");
    let Some(server) = builder.start(TEST).await else {
        return;
    };
    let mut peer = server.peer().await;
    assert_eq!(server.terminate_all().await, 1);
    assert!(peer.try_rows("SELECT 1").await.is_err());
    let refused = PostgresPeer::try_connect(server.addr(), "nobody", "postgres").await;
    assert_eq!(refused.unwrap_err().code, "28000");
}

#[tokio::test]
async fn a_server_encrypts() {
    let identity = Authority::new().issue_for_loopback();
    let Some(server) = PostgresServer::builder().tls(identity).start(TEST).await else {
        return;
    };
    assert_eq!(server.cmd("SHOW ssl").await, ["on"]);
}

#[tokio::test]
async fn a_pooler_lends_connections_for_a_transaction() {
    let Some(server) = PostgresServer::start(TEST).await else {
        return;
    };
    let Some(mut pooler) = PgBouncer::start(TEST, &server).await else {
        return;
    };
    let (mut one, mut other) = (
        PostgresPeer::connect(pooler.addr()).await,
        PostgresPeer::connect(pooler.addr()).await,
    );
    let ask = "SELECT pg_backend_pid()";
    assert_eq!(one.value(ask).await, other.value(ask).await);
    one.rows("BEGIN").await;
    let mine = one.value(ask).await;
    assert_ne!(mine, other.value(ask).await);
    pooler.restart().await;
    assert!(one.try_rows("COMMIT").await.is_err());
    PostgresPeer::connect(pooler.addr()).await.value(ask).await;
}

//! Settings that a role may have of its own, and that change no lock.

use std::time::Duration;

use lock_runtime::LockConfig;
use tests::{LONG, PostgresServer, TIME_LIMIT, connect, eventually, queued, release, take, within};
use tokio::time::sleep;

/// Each of them changes how a server reads, plans, writes or cuts off a statement.
const SETTINGS: [&str; 26] = [
    "default_transaction_isolation = serializable",
    "default_transaction_deferrable = on",
    "client_encoding = 'LATIN1'",
    "transform_null_equals = on",
    "quote_all_identifiers = on",
    "plpgsql.extra_errors = 'all'",
    "plpgsql.extra_warnings = 'all'",
    "plpgsql.variable_conflict = use_column",
    "plan_cache_mode = force_generic_plan",
    "session_replication_role = replica",
    "row_security = off",
    "extra_float_digits = -15",
    "idle_in_transaction_session_timeout = '1ms'",
    "standard_conforming_strings = off",
    "escape_string_warning = on",
    "array_nulls = off",
    "search_path = evil, public",
    "statement_timeout = '900ms'",
    "lock_timeout = '1ms'",
    "idle_session_timeout = '200ms'",
    "synchronous_commit = off",
    "client_min_messages = error",
    "enable_indexscan = off",
    "IntervalStyle = iso_8601",
    "DateStyle = 'SQL, DMY'",
    "TimeZone = 'Asia/Kathmandu'",
];

#[tokio::test]
async fn locks_do_not_depend_on_the_settings_of_the_role() {
    let Some(server) = PostgresServer::start("tests/postgres").await else {
        return;
    };
    server
        .cmd("CREATE ROLE shop LOGIN; GRANT CREATE ON DATABASE postgres TO shop; CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO shop")
        .await;
    // What stands in for functions that ours call by their names.
    for (name, result) in [
        (
            "clock_timestamp()",
            "timestamptz LANGUAGE sql AS 'SELECT ''-infinity''::timestamptz'",
        ),
        ("take(text, bool)", "int LANGUAGE sql AS 'SELECT 1'"),
        (
            "pg_try_advisory_xact_lock(bigint)",
            "bool LANGUAGE sql AS 'SELECT false'",
        ),
        ("acquire(text, uuid)", "int LANGUAGE sql AS 'SELECT 1'"),
    ] {
        server
            .cmd(&format!("CREATE FUNCTION evil.{name} RETURNS {result}"))
            .await;
    }
    for setting in SETTINGS {
        server.cmd(&format!("ALTER ROLE shop SET {setting}")).await;
    }
    let url = format!("postgres://shop@{}/postgres", server.addr());
    let config = || LockConfig::new(&*url).unwrap().connect_timeout(TIME_LIMIT);
    let (locks, others) = (connect(config()).await, connect(config()).await);
    release(take(&locks, "Schlüssel", LONG).await).await;
    let guard = take(&locks, "NULL", LONG).await;
    let next = queued(&others, others.lock("NULL").ttl(LONG).wait_forever()).await;
    sleep(Duration::from_millis(500)).await;
    release(guard).await;
    release(within(TIME_LIMIT, next).await.unwrap()).await;
    let permit = others.lock("many").permits(12).wait(TIME_LIMIT).acquire();
    let permit = within(TIME_LIMIT, permit).await.unwrap();
    let listed = within(TIME_LIMIT, locks.list("m*")).await;
    assert_eq!(listed.unwrap().len(), 1);
    release(permit).await;
}

/// Only the functions' own time limit tells that a call has waited for a row.
// Section: postgres.md#what-it-promises
#[tokio::test]
async fn a_time_limit_of_the_role_ends_no_wait_for_a_row() {
    let Some(server) = PostgresServer::start("tests/postgres").await else {
        return;
    };
    let role = "CREATE ROLE shop LOGIN; GRANT CREATE ON DATABASE postgres TO shop; \
                ALTER ROLE shop SET statement_timeout = '300ms'";
    server.cmd(role).await;
    let config = LockConfig::new(format!("postgres://shop@{}/postgres", server.addr())).unwrap();
    let locks = connect(config.unavailable_wait_forever()).await;
    release(take(&locks, "key", LONG).await).await;
    let mut peer = server.peer().await;
    peer.rows("BEGIN; SELECT FROM lock_runtime.lock FOR UPDATE")
        .await;
    let next = tokio::spawn(locks.lock("key").wait_forever().acquire());
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'shop' AND wait_event_type = 'Lock' \
                 AND clock_timestamp() - query_start > '400ms'";
    eventually(TIME_LIMIT, async || server.cmd(waits).await == ["1"]).await;
    peer.rows("COMMIT").await;
    release(within(TIME_LIMIT, next).await.unwrap().unwrap()).await;
}

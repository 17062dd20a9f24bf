//! Installing: by several at once, again, into schemas of any name, and never an older version.
//!
//! Section: postgres.md#installation

use tests::{PostgresHome, PostgresPeer, postgres_script, unique};
use tokio::task::JoinSet;

use crate::{
    install, installed,
    peer::{Peer, Wanted},
};

#[tokio::test]
async fn several_that_install_at_once_install_one_schema() {
    let Some(home) = PostgresHome::start().await else {
        return;
    };
    let mut installers = JoinSet::new();
    for _ in 0..6 {
        let (mut peer, schema) = (home.peer().await, home.schema().to_owned());
        installers.spawn(async move { peer.try_rows(&postgres_script(&schema)).await.map(drop) });
    }
    for installed in installers.join_all().await {
        installed.unwrap();
    }
    let mut peer = Peer::new(&home).await;
    assert_eq!(peer.call("version()").await[0][0].as_deref(), Some("9"));
    peer.take("lock:{a}", 1).await;
}

#[tokio::test]
async fn installing_again_keeps_locks_and_disturbs_nobody() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut peer, mut sql) = (Peer::new(&home).await, home.peer().await);
    peer.take("lock:{a}", 1).await;
    peer.wait("lock:{a}", 2).await;
    install(&mut sql, home.schema()).await;
    assert!(peer.renew("lock:{a}", 1, 60_000).await);
    assert!(peer.release("lock:{a}", 1).await);
    assert!(peer.standing("lock:{a}", 2).await > 0);
    // Quarantines count from the first installation.
    assert_eq!(
        peer.call("quarantined(60000)").await[0][0].as_deref(),
        Some("0")
    );
}

/// A dump reads for hours, and all calls would wait behind an installation that waits for it.
#[tokio::test]
async fn installing_again_waits_for_nobody_who_reads() {
    let Some(home) = installed().await else {
        return;
    };
    let schema = home.schema();
    let (mut reader, mut sql) = (home.peer().await, home.peer().await);
    let tables = ["lock", "sharer", "waiter", "history", "run", "meta"];
    let tables = tables.map(|it| format!("{schema}.{it}")).join(", ");
    reader
        .rows(&format!("BEGIN; LOCK TABLE {tables} IN ACCESS SHARE MODE"))
        .await;
    install(&mut sql, schema).await;
    Peer::new(&home).await.take("lock:{a}", 1).await;
    reader.rows("COMMIT").await;
}

#[tokio::test]
async fn a_newer_version_is_not_replaced() {
    let Some(home) = installed().await else {
        return;
    };
    let mut sql = home.peer().await;
    let schema = home.schema();
    sql.rows(&format!(
        "UPDATE {schema}.meta SET version = 1000; \
         CREATE OR REPLACE FUNCTION {schema}.force(name text, session uuid, longest int) RETURNS int LANGUAGE sql AS 'SELECT 42'"
    ))
    .await;
    let refused = sql.try_rows(&postgres_script(schema)).await.unwrap_err();
    assert_eq!(refused.code, "LR002");
    assert!(refused.message.contains("1000"), "{refused}");
    sql.rows("ROLLBACK").await;
    let mut peer = Peer::new(&home).await;
    assert_eq!(peer.force("lock:{a}").await, 42, "it was replaced");
    assert_eq!(peer.call("version()").await[0][0].as_deref(), Some("1000"));
}

/// As `psql` does with `ON_ERROR_ROLLBACK`, and tools that run each migration under a savepoint.
#[tokio::test]
async fn a_script_that_runs_under_savepoints_installs_the_same() {
    let Some(home) = PostgresHome::start().await else {
        return;
    };
    let (mut sql, schema) = (home.peer().await, home.schema());
    let script = postgres_script(schema);
    let (_, rest) = script.split_once("\nBEGIN ").unwrap();
    let (level, rest) = rest.split_once(";\n").unwrap();
    let (body, _) = rest.rsplit_once("COMMIT;").unwrap();
    for _ in 0..2 {
        sql.rows(&format!(
            "BEGIN {level}; SAVEPOINT one; {body} RELEASE one; COMMIT"
        ))
        .await;
        let left = format!(
            "SELECT count(*) FROM pg_proc WHERE pronamespace = '{schema}'::regnamespace \
             AND (proacl IS NULL OR prosecdef <> (proconfig IS NOT NULL))"
        );
        assert_eq!(sql.value(&left).await, "0");
        let defined = format!(
            "SELECT prosecdef FROM pg_proc WHERE pronamespace = '{schema}'::regnamespace AND proname = 'version'"
        );
        assert_eq!(sql.value(&defined).await, "t");
        let mut peer = Peer::new(&home).await;
        peer.take("lock:{a}", 1).await;
        assert!(peer.release("lock:{a}", 1).await);
    }
}

#[tokio::test]
async fn a_schema_may_have_any_name() {
    let Some(home) = PostgresHome::start().await else {
        return;
    };
    let mut sql = home.peer().await;
    for name in [
        "Locks",
        "odd \"name\"",
        "it's",
        "back\\slash",
        "a, b",
        "$$",
        "select",
    ] {
        let name = unique(name);
        for setting in ["on", "off"] {
            sql.rows(&format!("SET standard_conforming_strings = {setting}"))
                .await;
            install(&mut sql, &name).await;
        }
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        let mut peer = Peer::silent(home.peer().await, &quoted);
        let fence = peer.take("lock:{a}", 1).await;
        peer.call(&format!("assert_fence('a', {fence})")).await;
        assert!(peer.release("lock:{a}", 1).await);
    }
    let elsewhere = "SELECT count(*) FROM pg_class WHERE relname = 'sharer' AND relnamespace = 'public'::regnamespace";
    assert_eq!(sql.value(elsewhere).await, "0");
}

/// Functions of others with the same names keep their rights and their settings.
#[tokio::test]
async fn a_schema_that_others_use_too_is_left_as_it_is() {
    let Some(home) = PostgresHome::start().await else {
        return;
    };
    let mut sql = home.peer().await;
    let schema = home.schema();
    sql.rows(&format!(
        "CREATE SCHEMA {schema}; CREATE FUNCTION {schema}.status() RETURNS int LANGUAGE sql AS 'SELECT 1'; \
         CREATE FUNCTION {schema}.take() RETURNS int LANGUAGE sql AS 'SELECT 1'"
    ))
    .await;
    let facts = format!(
        "SELECT concat_ws(' ', oid, prosecdef, proconfig, proacl) FROM pg_proc \
         WHERE pronamespace = '{schema}'::regnamespace AND pronargs = 0 AND proname IN ('status', 'take') ORDER BY proname"
    );
    let before = sql.column(&facts).await;
    install(&mut sql, schema).await;
    assert_eq!(sql.column(&facts).await, before);
}

#[tokio::test]
async fn an_installation_that_fails_leaves_nothing() {
    let Some(home) = PostgresHome::start().await else {
        return;
    };
    let mut sql = home.peer().await;
    let schema = home.schema();
    // It has another owner.
    sql.rows(&format!("CREATE SCHEMA {schema}; CREATE ROLE {schema}_shop; GRANT USAGE ON SCHEMA {schema} TO {schema}_shop")).await;
    let mut shop: PostgresPeer = home.peer().await;
    shop.rows(&format!("SET ROLE {schema}_shop")).await;
    assert_eq!(
        shop.try_rows(&postgres_script(schema))
            .await
            .unwrap_err()
            .code,
        "42501"
    );
    let left =
        format!("SELECT count(*) FROM pg_class WHERE relnamespace = '{schema}'::regnamespace");
    assert_eq!(sql.value(&left).await, "0");
    install(&mut sql, schema).await;
    let mut peer = Peer::new(&home).await;
    assert!(
        peer.acquire(&Wanted::new("lock:{a}", 1))
            .await
            .is("granted")
    );
}

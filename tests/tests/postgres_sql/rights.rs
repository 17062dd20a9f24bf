//! Roles need the right to use the schema, and get no other by it.
//!
//! Section: postgres.md#rights

use tests::{PostgresHome, PostgresPeer};

use crate::{
    installed,
    peer::{Peer, Wanted, uuid},
};

/// A schema, and a role that has no right but to log in and to use it.
struct Scene {
    home: PostgresHome,
    admin: PostgresPeer,
    role: String,
    /// Of the role.
    shop: PostgresPeer,
}

impl Scene {
    async fn new() -> Option<Self> {
        let home = installed().await?;
        let [mut admin, mut shop] = [home.peer().await, home.peer().await];
        let schema = home.schema();
        let role = format!("{schema}_shop");
        let create = format!("CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}");
        admin.rows(&create).await;
        let become_role = format!("SET SESSION AUTHORIZATION {role}");
        shop.rows(&become_role).await;
        Some(Self {
            home,
            admin,
            role,
            shop,
        })
    }
}

#[tokio::test]
async fn the_right_to_use_the_schema_is_enough_for_every_call() {
    let Some(Scene { home, shop, .. }) = Scene::new().await else {
        return;
    };
    let mut peer = Peer::of(shop, home.schema()).await;
    let fence = peer.take("lock:{a}", 1).await;
    peer.call(&format!("assert_fence('a', {fence})")).await;
    assert!(peer.wait("lock:{a}", 2).await.is("waiting"));
    assert!(
        peer.acquire(&Wanted {
            kind: "r",
            longest: 10,
            ..Wanted::new("lock:{b}", 1)
        })
        .await
        .is("granted")
    );
    assert!(peer.renew("lock:{a}", 1, 60_000).await);
    assert!(peer.pass("lock:{a}", 1, fence).await);
    assert!(peer.release("lock:{a}", 1).await);
    assert!(peer.standing("lock:{a}", 2).await > 0);
    peer.try_many(&[("-", "lock:{a}", 2, 0)]).await.unwrap();
    let session = uuid(peer.session);
    for call in [
        "list('*', '', 9)",
        "overview('*', '', 9, 9)",
        "sweep('', 9)",
        "quarantined(9)",
        "version()",
        "grants('lock:{b}')",
    ] {
        peer.call(call).await;
    }
    peer.call(&format!("status('lock:{{b}}', {session})")).await;
    assert_eq!(peer.force("lock:{b}").await, 1);
}

#[tokio::test]
async fn callers_have_no_right_to_tables_and_to_what_serves_the_functions() {
    let Some(Scene {
        home,
        mut admin,
        role,
        mut shop,
    }) = Scene::new().await
    else {
        return;
    };
    let schema = home.schema();
    for table in ["lock", "waiter", "sharer", "history", "run", "meta"] {
        for sql in [
            format!("SELECT * FROM {schema}.{table}"),
            format!("DELETE FROM {schema}.{table}"),
        ] {
            assert_eq!(
                shop.try_rows(&sql).await.unwrap_err().code,
                "42501",
                "{sql}"
            );
        }
    }
    for call in [
        "take('lock:{a}', true)",
        "make('lock:{a}')",
        "flush(false)",
        "guard('a')",
        "note_holders('lock:{a}', 1)",
    ] {
        assert_eq!(
            shop.try_rows(&format!("SELECT {schema}.{call}"))
                .await
                .unwrap_err()
                .code,
            "42501",
            "{call}"
        );
    }
    admin
        .rows(&format!("REVOKE USAGE ON SCHEMA {schema} FROM {role}"))
        .await;
    assert_eq!(
        shop.try_rows(&format!("SELECT {schema}.version()"))
            .await
            .unwrap_err()
            .code,
        "42501"
    );
}

/// A function that runs with the rights of its owner must find nothing that its caller has put in its way.
#[tokio::test]
async fn callers_cannot_lead_the_functions_elsewhere() {
    let Some(Scene {
        home,
        mut admin,
        role,
        mut shop,
    }) = Scene::new().await
    else {
        return;
    };
    let schema = home.schema();
    admin
        .rows(&format!("CREATE SCHEMA {role} AUTHORIZATION {role}"))
        .await;
    shop.rows(&format!(
        "CREATE TABLE {role}.lock (name text); CREATE TEMPORARY TABLE lock (name text);
         CREATE FUNCTION {role}.same(text, text) RETURNS bool LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'called by %', current_user; END $$;
         CREATE OPERATOR {role}.= (FUNCTION = {role}.same, LEFTARG = text, RIGHTARG = text);
         CREATE FUNCTION {role}.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'called by %', current_user; END $$;
         SET search_path = {role}, pg_temp, {schema}, pg_catalog"
    ))
    .await;
    let mut peer = Peer::of(shop, schema).await;
    let fence = peer.take("lock:{a}", 1).await;
    peer.call(&format!("assert_fence('a', {fence})")).await;
    assert!(peer.wait("lock:{a}", 2).await.is("waiting"));
    assert!(peer.release("lock:{a}", 1).await);
    assert!(peer.standing("lock:{a}", 2).await > 0);
}

//! Rows of locks are deleted when nobody has used them for an hour, and only then.

use crate::{
    installed,
    peer::{Peer, Wanted},
};

async fn sweep(peer: &mut Peer, after: &str, most: u32) -> (Option<String>, String) {
    let mut row = peer
        .call(&format!("sweep('{after}', {most})"))
        .await
        .remove(0);
    (row.remove(0), row.remove(0).unwrap())
}

#[tokio::test]
async fn rows_that_nobody_has_used_for_an_hour_are_deleted() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    let names: Vec<_> = ["a", "b", "c", "d", "e", "f"]
        .map(|name| format!("lock:{{{name}}}"))
        .into();
    let mut fences = Vec::new();
    for name in &names {
        fences.push(peer.take(name, 1).await);
        if name != "lock:{f}" {
            peer.release(name, 1).await;
        }
    }
    peer.acquire(&Wanted {
        kind: "r",
        ..Wanted::new("lock:{e}", 2)
    })
    .await;
    let schema = home.schema();
    let an_hour_ago = async |peer: &mut Peer, condition: &str| {
        let sql =
            format!("UPDATE {schema}.lock SET since = since - interval '61 min' WHERE {condition}");
        peer.sql.rows(&sql).await;
    };
    assert_eq!(sweep(&mut peer, "", 100).await, (None, "0".into()));
    an_hour_ago(&mut peer, "name <> 'lock:{d}'").await;
    // Somebody uses it now.
    let mut other = home.peer().await;
    other
        .rows(&format!(
            "BEGIN; SELECT FROM {schema}.lock WHERE name = 'lock:{{b}}' FOR NO KEY UPDATE"
        ))
        .await;
    assert_eq!(
        sweep(&mut peer, "", 2).await,
        (Some("lock:{b}".into()), "1".into())
    );
    assert_eq!(sweep(&mut peer, "lock:{b}", 100).await, (None, "1".into()));
    other.rows("COMMIT").await;
    assert_eq!(sweep(&mut peer, "", 100).await, (None, "1".into()));
    let left = format!("SELECT name FROM {schema}.lock ORDER BY name");
    assert_eq!(
        peer.sql.column(&left).await,
        ["lock:{d}", "lock:{e}", "lock:{f}"]
    );
    assert!(peer.take("lock:{a}", 3).await > fences[0]);
    assert!(peer.renew("lock:{e}", 2, 60_000).await);
}

#[tokio::test]
async fn what_the_dead_have_left_goes_with_the_row() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut peer, mut dead) = (Peer::new(&home).await, Peer::pooled(&home).await);
    for token in 1..=2 {
        dead.acquire(&Wanted {
            kind: "r",
            ..Wanted::new("lock:{a}", token)
        })
        .await;
    }
    dead.wait("lock:{a}", 3).await;
    let schema = home.schema();
    for table in ["lock", "sharer"] {
        let sql = "since = since - interval '2 h', expires = expires - interval '2 h'";
        peer.sql
            .rows(&format!("UPDATE {schema}.{table} SET {sql}"))
            .await;
    }
    assert_eq!(sweep(&mut peer, "", 100).await.1, "1");
    for table in ["lock", "sharer", "waiter"] {
        assert_eq!(
            peer.sql
                .value(&format!("SELECT count(*) FROM {schema}.{table}"))
                .await,
            "0",
            "{table}"
        );
    }
}

#[tokio::test]
async fn histories_of_locks_that_nobody_takes_are_forgotten_after_32_days() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    let schema = home.schema();
    for (name, fence, days) in [
        ("a", 1, 33),
        ("a", 2, 31),
        ("b", 1, 34),
        ("b", 2, 33),
        ("c", 1, 1),
    ] {
        peer.sql
            .rows(&format!(
                "INSERT INTO {schema}.history (name, fence, token, who, kind, since) VALUES \
                 ('lock:{{{name}}}', {fence}, gen_random_uuid(), '', 'x', clock_timestamp() - interval '{days} days')"
            ))
            .await;
    }
    sweep(&mut peer, "", 100).await;
    let left = format!("SELECT name || fence FROM {schema}.history ORDER BY name, fence");
    assert_eq!(
        peer.sql.column(&left).await,
        ["lock:{a}1", "lock:{a}2", "lock:{c}1"]
    );
}

/// However many grants the locks have that are still taken.
#[tokio::test]
async fn a_call_looks_at_few_histories() {
    let Some(home) = installed().await else {
        return;
    };
    let mut peer = Peer::new(&home).await;
    let schema = home.schema();
    let grants = format!(
        "INSERT INTO {schema}.history (name, fence, token, who, kind, since) \
         SELECT 'lock:{{' || n || '}}', f, gen_random_uuid(), '', 'x', clock_timestamp() - interval '33 days' \
         FROM generate_series(1, 4) n, generate_series(1, 30) f"
    );
    peer.sql.rows(&grants).await;
    let (mut after, mut pages) = (String::new(), 0);
    while let (Some(next), _) = sweep(&mut peer, &after, 10).await {
        (after, pages) = (next, pages + 1);
    }
    assert_eq!(pages, 2, "of two locks each");
    let left = format!("SELECT count(*) FROM {schema}.history");
    assert_eq!(peer.sql.value(&left).await, "0");
}

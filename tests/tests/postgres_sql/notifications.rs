//! A server whose queue of notifications is full hands locks over without a notification: one would fail the commit.
//!
//! Section: postgres.md#what-it-promises

use tests::{PostgresPeer, PostgresServer, SCHEMA, TIME_LIMIT};

use crate::{install, peer::Peer};

const LOCK: &str = "lock:{a}";

#[tokio::test]
async fn a_full_queue_of_notifications_is_left_alone() {
    // The function that this replaces is one of the whole database.
    let Some(server) = PostgresServer::start("tests/postgres_sql").await else {
        return;
    };
    install(&mut server.peer().await, SCHEMA).await;
    let mut admin = server.peer().await;
    let mut waiter = Peer::of(server.peer().await, SCHEMA).await;
    let mut fences = Vec::new();
    for (usage, token) in [(1.0, 1), (0.5, 3)] {
        report_usage(&mut admin, usage).await;
        // An older connection would go on with its plans, and with the function of before.
        let mut holder = Peer::of(server.peer().await, SCHEMA).await;
        holder.take(LOCK, token).await;
        assert!(waiter.wait(LOCK, token + 1).await.is("waiting"));
        assert!(holder.release(LOCK, token).await);
        fences.push(waiter.standing(LOCK, token + 1).await);
        assert!(waiter.release(LOCK, token + 1).await);
    }
    assert!(fences.iter().all(|fence| *fence > 0), "{fences:?}");
    // Notifications arrive in their order: that of the first hand-over would be here too.
    let notified = waiter.grants(TIME_LIMIT).await.into_iter();
    let notified: Vec<_> = notified.map(|(fence, ..)| fence).collect();
    assert_eq!(notified, fences[1..]);
}

/// Lets the server claim that so much of its queue is used: to fill it takes gigabytes.
async fn report_usage(admin: &mut PostgresPeer, usage: f64) {
    let sql = format!(
        "CREATE OR REPLACE FUNCTION pg_catalog.pg_notification_queue_usage() RETURNS float8
         LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED AS 'SELECT {usage:?}::float8'"
    );
    admin.rows(&sql).await;
}

//! Promise: the functions in PostgreSQL do what `docs/postgres.md` says of them, whoever calls them, and whatever becomes
//! of server, sessions and callers.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod assert_fence;
mod at_random;
mod chains;
mod commits;
mod inspection;
mod installation;
mod leases;
mod many;
mod notifications;
mod peer;
mod quarantine;
mod queue;
mod rights;
mod shared;
mod snapshots;
mod sweep;

use tests::{PostgresHome, PostgresPeer, postgres_script};

/// A schema of the test's own with tables and functions; `None`, with a notice, where there is no server.
async fn installed() -> Option<PostgresHome> {
    let home = PostgresHome::start().await?;
    install(&mut home.peer().await, home.schema()).await;
    Some(home)
}

async fn install(peer: &mut PostgresPeer, schema: &str) {
    peer.rows(&postgres_script(schema)).await;
}

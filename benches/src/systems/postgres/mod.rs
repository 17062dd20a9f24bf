//! What else locks on PostgreSQL, on connections of `tokio-postgres`.

mod advisory;
mod apart;
mod lease;

use std::sync::Arc;

use tokio_postgres::{Client, NoTls};

pub(crate) use self::advisory::AdvisoryLocks;
pub(crate) use self::apart::Apart;
pub(crate) use self::lease::LeaseStatements;

/// A connection whose statements go to the server without waiting for the answers of others.
async fn connect(url: &str) -> Arc<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a server");
    tokio::spawn(connection);
    Arc::new(client)
}

/// Creates what each of them needs, and our schema.
pub(crate) async fn install(url: &str) {
    apart::install(url).await;
    lease::install(url).await;
}

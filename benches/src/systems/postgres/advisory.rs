//! Advisory locks of sessions, which have neither a lease nor a fencing token.

use std::sync::Arc;

use tokio_postgres::{Client, Statement};

use super::connect;
use crate::systems::Locks;

/// One connection, of which the server lets every task in: only for keys that one task takes, or for [`super::Each`].
#[derive(Clone)]
pub(crate) struct AdvisoryLocks {
    client: Arc<Client>,
    take: Statement,
    free: Statement,
}

impl Locks for AdvisoryLocks {
    type Guard = String;

    async fn connect(url: &str) -> Self {
        let client = connect(url).await;
        let statement = async |text| client.prepare(text).await.expect("a statement");
        Self {
            take: statement("SELECT pg_advisory_lock(hashtextextended($1, 0))").await,
            free: statement("SELECT pg_advisory_unlock(hashtextextended($1, 0))").await,
            client,
        }
    }

    async fn take(&self, key: &str) -> String {
        let taken = self.client.query_one(&self.take, &[&key]).await;
        taken.expect("the lock");
        key.to_owned()
    }

    async fn free(&self, key: String) {
        let freed = self.client.query_one(&self.free, &[&key]).await;
        assert!(freed.expect("an answer").get::<_, bool>(0), "not held");
    }
}

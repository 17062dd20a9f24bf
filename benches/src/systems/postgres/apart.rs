//! The functions of our schema, called for one lock at a time.

use std::sync::Arc;

use lock_runtime::LockManager;
use tokio_postgres::{Client, Statement};

use super::connect;
use crate::systems::Locks;

const TAKE: &str = "\
    SELECT * FROM lock_runtime.acquire(
      $1, $2::text::uuid, 'bench', 'x', 10000, $3::text::uuid, false, true, NULL, 0, true)";

const FREE: &str = "\
    SELECT * FROM lock_runtime.release($1, $2::text::uuid, 0, false, $3::text::uuid, 0)";

/// One connection, which puts no calls together.
#[derive(Clone)]
pub(crate) struct Apart {
    client: Arc<Client>,
    session: String,
    take: Statement,
    free: Statement,
}

/// Creates the schema.
pub(crate) async fn install(url: &str) {
    LockManager::connect(url).await.expect("a server");
}

fn token() -> String {
    format!("{:032x}", fastrand::u128(..))
}

impl Locks for Apart {
    /// The key and the token.
    type Guard = (String, String);

    async fn connect(url: &str) -> Self {
        let client = connect(url).await;
        let statement = async |text| client.prepare(text).await.expect("a statement");
        Self {
            session: token(),
            take: statement(TAKE).await,
            free: statement(FREE).await,
            client,
        }
    }

    async fn take(&self, key: &str) -> Self::Guard {
        let (name, token) = (format!("lock:{{{key}}}"), token());
        let args: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&name, &token, &self.session];
        let row = self.client.query_one(&self.take, &args).await;
        let status: String = row.expect("an answer").get("status");
        assert_eq!(status, "granted", "{key} is held, and this does not wait");
        (name, token)
    }

    async fn free(&self, (name, token): Self::Guard) {
        let args: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&name, &token, &self.session];
        let row = self.client.query_one(&self.free, &args).await;
        assert!(
            row.expect("an answer").get::<_, bool>(0),
            "the lock was lost"
        );
    }
}

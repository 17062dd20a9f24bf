//! Bare lease statements, as `ShedLock` has them: one to take a lock, one to release it.

use std::sync::Arc;

use tokio_postgres::{Client, Statement};

use super::connect;
use crate::systems::Locks;

/// One row for each lock. The columns are those of `ShedLock`.
const TABLE: &str = "\
    CREATE TABLE IF NOT EXISTS shedlock (
      name varchar(64) PRIMARY KEY,
      lock_until timestamp NOT NULL, locked_at timestamp NOT NULL, locked_by varchar(255) NOT NULL
    )";

const MAKE: &str = "\
    INSERT INTO shedlock VALUES ($1, '-infinity', '-infinity', '') ON CONFLICT DO NOTHING";

const TAKE: &str = "\
    UPDATE shedlock SET lock_until = timezone('utc', clock_timestamp()) + interval '10 s',
      locked_at = timezone('utc', clock_timestamp()), locked_by = $2
    WHERE name = $1 AND lock_until <= timezone('utc', clock_timestamp())
    RETURNING name";

const FREE: &str = "\
    UPDATE shedlock SET lock_until = timezone('utc', clock_timestamp())
    WHERE name = $1 AND locked_by = $2
    RETURNING name";

/// One connection. It neither waits nor renews, and has no fencing token.
#[derive(Clone)]
pub(crate) struct LeaseStatements {
    client: Arc<Client>,
    make: Statement,
    take: Statement,
    free: Statement,
}

/// Creates the table.
pub(crate) async fn install(url: &str) {
    let made = connect(url).await.batch_execute(TABLE).await;
    made.expect("a table");
}

impl Locks for LeaseStatements {
    /// The key and the holder.
    type Guard = (String, String);

    async fn connect(url: &str) -> Self {
        let client = connect(url).await;
        let statement = async |text| client.prepare(text).await.expect("a statement");
        Self {
            make: statement(MAKE).await,
            take: statement(TAKE).await,
            free: statement(FREE).await,
            client,
        }
    }

    async fn take(&self, key: &str) -> Self::Guard {
        let holder = format!("{:032x}", fastrand::u128(..));
        let take = async || {
            let row = self.client.query_opt(&self.take, &[&key, &holder]).await;
            row.expect("an answer").is_some()
        };
        if !take().await {
            // Only the first time there is no row.
            let made = self.client.execute(&self.make, &[&key]).await;
            made.expect("a row");
            assert!(take().await, "{key} is held, and this does not wait");
        }
        (key.to_owned(), holder)
    }

    async fn free(&self, (key, holder): Self::Guard) {
        let row = self.client.query_opt(&self.free, &[&key, &holder]).await;
        assert!(row.expect("an answer").is_some(), "the lock was lost");
    }
}

//! Bare lease statements, as `ShedLock` has them: one to take a lock, one to release it.

use std::sync::Arc;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Params, Statement};
use tokio::sync::Mutex;

use super::connect;
use crate::systems::Locks;

/// One row for each lock. The columns are those of `ShedLock`.
const TABLE: &str = "\
    CREATE TABLE IF NOT EXISTS shedlock (
      name VARCHAR(64) NOT NULL PRIMARY KEY,
      lock_until TIMESTAMP(3) NOT NULL, locked_at TIMESTAMP(3) NOT NULL, locked_by VARCHAR(255) NOT NULL
    )";

const MAKE: &str = "\
    INSERT IGNORE INTO shedlock VALUES (?, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), '')";

const TAKE: &str = "\
    UPDATE shedlock SET lock_until = TIMESTAMPADD(SECOND, 10, UTC_TIMESTAMP(3)), locked_at = UTC_TIMESTAMP(3), locked_by = ?
    WHERE name = ? AND lock_until <= UTC_TIMESTAMP(3)";

const FREE: &str = "\
    UPDATE shedlock SET lock_until = UTC_TIMESTAMP(3) WHERE name = ? AND locked_by = ?";

/// One connection. It neither waits nor renews, and has no fencing token.
#[derive(Clone)]
pub(crate) struct Statements {
    connection: Arc<Mutex<Conn>>,
    make: Statement,
    take: Statement,
    free: Statement,
}

/// Creates the table.
pub(crate) async fn install(url: &str) {
    let made = connect(url).await.query_drop(TABLE).await;
    made.expect("a table");
}

impl Statements {
    /// Whether the statement has changed a row.
    async fn run(&self, statement: &Statement, args: impl Into<Params> + Send) -> bool {
        let mut connection = self.connection.lock().await;
        let answer = connection.exec_drop(statement, args).await;
        answer.expect("an answer");
        connection.affected_rows() > 0
    }
}

impl Locks for Statements {
    /// The key and the holder.
    type Guard = (String, String);

    async fn connect(url: &str) -> Self {
        let mut connection = connect(url).await;
        Self {
            make: connection.prep(MAKE).await.expect("a statement"),
            take: connection.prep(TAKE).await.expect("a statement"),
            free: connection.prep(FREE).await.expect("a statement"),
            connection: Arc::new(Mutex::new(connection)),
        }
    }

    async fn take(&self, key: &str) -> Self::Guard {
        let holder = format!("{:032x}", fastrand::u128(..));
        if !self.run(&self.take, (&*holder, key)).await {
            // Only the first time there is no row.
            self.run(&self.make, (key,)).await;
            let taken = self.run(&self.take, (&*holder, key)).await;
            assert!(taken, "{key} is held, and this does not wait");
        }
        (key.to_owned(), holder)
    }

    async fn free(&self, (key, holder): Self::Guard) {
        let freed = self.run(&self.free, (&*key, &*holder)).await;
        assert!(freed, "the lock was lost");
    }
}

//! Locks of sessions, which have neither a lease nor a fencing token.

use std::sync::Arc;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Statement};
use tokio::sync::Mutex;

use super::connect;
use crate::systems::Locks;

/// One connection, which a task that waits keeps from all others: only for [`crate::systems::Each`].
#[derive(Clone)]
pub(crate) struct GetLock {
    connection: Arc<Mutex<Conn>>,
    take: Statement,
    free: Statement,
}

impl Locks for GetLock {
    type Guard = String;

    async fn connect(url: &str) -> Self {
        let mut connection = connect(url).await;
        let [take, free] = [
            "SELECT GET_LOCK(SHA2(?, 224), 3600)",
            "SELECT RELEASE_LOCK(SHA2(?, 224))",
        ];
        Self {
            take: connection.prep(take).await.expect("a statement"),
            free: connection.prep(free).await.expect("a statement"),
            connection: Arc::new(Mutex::new(connection)),
        }
    }

    async fn take(&self, key: &str) -> String {
        let mut connection = self.connection.lock().await;
        let taken = connection.exec_first(&self.take, (key,)).await;
        assert_eq!(taken.expect("an answer"), Some(1), "no lock");
        key.to_owned()
    }

    async fn free(&self, key: String) {
        let mut connection = self.connection.lock().await;
        let freed = connection.exec_first(&self.free, (key,)).await;
        assert_eq!(freed.expect("an answer"), Some(1), "not held");
    }
}

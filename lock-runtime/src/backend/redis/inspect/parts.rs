//! Queries of which several servers answer a part each.

use tokio::sync::oneshot;

use crate::backend::queue::protocol::trouble::Trouble;
use crate::types::error::Cause;

/// The answers that are still to come, one from each server.
pub(crate) type Parts<T> = Vec<oneshot::Receiver<Result<T, Cause>>>;

/// Their results, and the errors of those that failed.
pub(crate) async fn together<T>(parts: Parts<T>) -> (Vec<T>, Vec<Cause>) {
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    for part in parts {
        let gone = |_| Err(Trouble::not_now("the query was given up").cause());
        match part.await.unwrap_or_else(gone) {
            Ok(it) => found.push(it),
            Err(cause) => failed.push(cause),
        }
    }
    (found, failed)
}

//! Why a manager cannot connect to a store on Redis.

use std::sync::Arc;

use super::sentinel::NoMaster;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::transport::ready;
use crate::types::error::LockError;

/// Because of a setting, or of the server.
pub(super) fn connect_failed(trouble: &Trouble, server: &Arc<str>, database: i64) -> LockError {
    let cause = trouble.cause();
    if trouble.is_in_cluster() {
        let reason = format!("{cause}: name it with `redis+cluster://`");
        return LockError::invalid("url", reason);
    }
    if trouble.is_no_such_database() {
        let reason = format!("the server has no database {database}");
        return LockError::invalid("url", reason);
    }
    if cause
        .downcast_ref::<NoMaster>()
        .is_some_and(NoMaster::is_unknown)
    {
        return LockError::invalid("url", cause);
    }
    ready::connect_failed(server, cause)
}

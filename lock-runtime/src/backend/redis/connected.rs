//! Whether a store is connected in time when a manager is made, and why it is not.

use std::future::Future;
use std::sync::Arc;

use super::protocol::reply::Trouble;
use super::sentinel::NoMaster;
use crate::backend::setup::Setup;
#[cfg(feature = "tls")]
use crate::backend::transport::tls::Distrust;
use crate::types::error::LockError;

/// Awaits `up` for as long as the configuration allows. `None`: it was not ready then.
pub(super) async fn in_time(
    setup: &Setup,
    up: impl Future<Output = Result<(), Trouble>>,
) -> Result<(), Option<Trouble>> {
    match tokio::time::timeout(setup.connect_timeout, up).await {
        Ok(result) => result.map_err(Some),
        Err(_) => Err(None),
    }
}

/// The time was over, and nothing had said why.
pub(super) fn late(setup: &Setup) -> Trouble {
    Trouble::said(&format!("no connection within {:?}", setup.connect_timeout))
}

/// Why a manager cannot connect: because of a setting, or of the server.
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
    #[cfg(feature = "tls")]
    if cause.is::<Distrust>() {
        return LockError::invalid("tls", cause);
    }
    LockError::unavailable_at(server, cause)
}

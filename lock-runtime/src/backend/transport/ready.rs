//! The first connection of a manager: the wait for it, and the error if it fails.

use std::future::Future;
use std::sync::Arc;

use crate::backend::setup::Setup;
use crate::backend::transport::distrust::Distrust;
use crate::types::error::{Cause, LockError};

/// Awaits `up` for as long as the configuration allows, or not at all if the store connects in
/// the background. `None`: it was not ready then.
pub(crate) async fn in_time<E>(
    setup: &Setup,
    up: impl Future<Output = Result<(), E>>,
) -> Result<(), Option<E>> {
    if setup.lazy {
        return Ok(());
    }
    match tokio::time::timeout(setup.connect_timeout, up).await {
        Ok(result) => result.map_err(Some),
        Err(_) => Err(None),
    }
}

/// The error text if nothing else says why there is no connection.
pub(crate) fn late(setup: &Setup) -> String {
    format!("no connection within {:?}", setup.connect_timeout)
}

/// The error of a manager that cannot connect: its certificates or the server are the reason.
pub(crate) fn connect_failed(server: &Arc<str>, cause: Cause) -> LockError {
    if cause.is::<Distrust>() {
        return LockError::invalid("tls", cause);
    }
    LockError::unavailable_at(server, cause)
}

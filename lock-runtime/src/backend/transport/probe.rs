//! Completes the answer of a probe with the last error of its connection.

use crate::types::error::Cause;
use crate::types::health::{Health, LastError};
use crate::types::query::Found;

/// `known` is the last error. If the connection is up again, that error is over, and a failed
/// probe has a reason of its own.
pub(crate) fn complete(result: &mut Result<Found, Cause>, is_up: bool, known: Option<LastError>) {
    match result {
        Ok(Found::Health(health)) => health.last_error = known,
        Ok(_) => {}
        Err(cause) => {
            let current = known.filter(|_| !is_up);
            let error = current.unwrap_or_else(|| LastError::now(cause));
            *result = Ok(Found::Health(Health::unreachable(error)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    fn completed(mut result: Result<Found, Cause>, is_up: bool) -> Health {
        complete(&mut result, is_up, Some(LastError::now("before")));
        match result {
            Ok(Found::Health(health)) => health,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_error_that_is_over_is_not_why_a_probe_fails() {
        let failed = || Err(Arc::new(io::Error::other("now")) as Cause);
        for (is_up, says) in [(true, "now"), (false, "before")] {
            let health = completed(failed(), is_up);
            assert!(!health.connected);
            assert_eq!(&*health.last_error.expect("an error").message, says);
        }
        let reached = Ok(Found::Health(Health::reached(Duration::ZERO)));
        let health = completed(reached, true);
        assert!(health.connected && health.last_error.is_some());
    }
}

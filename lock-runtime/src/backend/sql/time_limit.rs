//! Which calls may take as long as the wait for a row that somebody keeps.

use std::time::Duration;

use crate::backend::queue::protocol::call::LONGEST;

/// Whether the lease of a call with this time limit is too short to find out that a server which waits is not silent.
pub(crate) fn is_short(timeout: Duration) -> bool {
    timeout < LONGEST
}

/// How long a server may be silent that waits for a row, for so long beyond the time limit of the call.
pub(crate) fn beyond_rows(timeout: Duration, beyond: Duration) -> Duration {
    if is_short(timeout) {
        timeout
    } else {
        timeout + beyond
    }
}

//! Merges what servers may say of one lock, for `fuzz/`.

use super::merging::{self, Sight};
use crate::types::holder::Status;
use crate::types::key::LockKey;
use crate::types::overview::Overview;

const SIGHT: Sight = Sight {
    servers: 3,
    majority: 2,
};

/// Two servers say the same, and perhaps a third one that the lock is free.
pub(in crate::backend::redis) fn merge((status, overview): (Option<Status>, Option<Overview>)) {
    if let Some(status) = status {
        let free = Status::free(LockKey::of("k"));
        for all in [vec![status.clone(); 2], vec![status.clone(), status, free]] {
            drop(merging::status(all, SIGHT));
        }
    }
    if let Some(overview) = overview {
        drop(merging::overview(vec![overview; 2], SIGHT));
    }
}

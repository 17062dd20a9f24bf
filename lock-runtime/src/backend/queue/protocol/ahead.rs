//! What a reply says of a lock that it does not grant: who has it, and who waits.

use std::time::Duration;

use crate::backend::name;
use crate::types::crowd::Crowd;
use crate::types::holder::Holder;

/// Who is ahead of a waiter.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// The name of the holder whose lease ends first.
    pub(crate) owner: Box<str>,
    /// `None` if it has no ttl.
    pub(crate) left: Option<Duration>,
    pub(crate) crowd: Crowd,
    /// How many others of the queue come before all that have asked; `None` if that is known only
    /// to be more than one.
    pub(crate) before: Option<u32>,
}

impl Ahead {
    /// Whether the lock is held by a client that knows nothing of the queue.
    pub(crate) fn is_foreign(&self) -> bool {
        !self.owner.is_empty() && name::holder(&self.owner, None).process.is_none()
    }

    pub(crate) fn holder(&self) -> Holder {
        Holder {
            crowd: self.crowd,
            ..name::holder(&self.owner, self.left)
        }
    }
}

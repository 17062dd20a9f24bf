//! How an inspection goes on.

use crate::backend::redis::protocol::inspection::Inspect;

/// What follows from a reply.
pub(super) enum Next {
    /// These steps.
    Calls(Vec<Inspect>),
    /// The inspection is complete.
    Answer,
}

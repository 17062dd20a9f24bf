//! What threads share, in one place: models of their interleavings put their own in its stead.

pub(crate) use std::sync::atomic::{AtomicU8, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard};

//! Which store a URL names: one line for each scheme.

use std::sync::Arc;

use crate::backend::{self, Target};
use crate::vocabulary::error::LockError;

#[cfg(feature = "redis")]
use crate::backend::redis;

type Parse = fn(&str) -> Result<Arc<dyn Target>, LockError>;

/// How the URLs of a store begin, and what reads them.
const STORES: &[(&str, Parse)] = &[
    ("memory:", backend::memory::target),
    ("redis://", redis::target),
    ("redis+unix://", redis::target),
];

/// Stands in for a store whose feature is off.
#[cfg(not(feature = "redis"))]
mod redis {
    use super::{Arc, LockError, Target};

    pub(super) fn target(_url: &str) -> Result<Arc<dyn Target>, LockError> {
        let reason = "lock-runtime was built without its feature `redis`";
        Err(LockError::invalid("url", reason))
    }
}

/// Where the locks of a URL are kept.
pub(crate) fn parse(url: &str) -> Result<Arc<dyn Target>, LockError> {
    let scheme = |text: &str| text.split_once(':').map(|(scheme, _)| scheme.to_owned());
    let named = scheme(url);
    let store = STORES
        .iter()
        .find(|(start, _)| named.is_some() && scheme(start) == named);
    match store {
        Some((_, parse)) => parse(url),
        // The URL is not shown, there may be a password in it.
        None => Err(LockError::invalid("url", unknown())),
    }
}

fn unknown() -> String {
    let starts: Vec<_> = STORES
        .iter()
        .map(|(start, _)| format!("`{start}`"))
        .collect();
    format!("it must begin with one of {}", starts.join(", "))
}

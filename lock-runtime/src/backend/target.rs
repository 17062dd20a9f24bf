//! Which store a URL names: one line for each scheme.

use std::sync::Arc;

#[cfg(feature = "redis")]
use crate::backend::redis;
use crate::backend::{Target, memory};
use crate::vocabulary::error::LockError;

type Parse = fn(&str) -> Result<Arc<dyn Target>, LockError>;

/// How the URLs of a store begin, and who reads the rest.
const STORES: &[(&str, Parse)] = &[
    ("memory:", memory::target),
    #[cfg(feature = "redis")]
    ("redis://", redis::target),
    #[cfg(feature = "redis")]
    ("redis+unix://", redis::target),
    #[cfg(not(feature = "redis"))]
    ("redis://", |_| left_out("redis")),
    #[cfg(not(feature = "redis"))]
    ("redis+unix://", |_| left_out("redis")),
];

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

#[cfg(not(feature = "redis"))]
fn left_out(feature: &str) -> Result<Arc<dyn Target>, LockError> {
    let reason = format!("lock-runtime was built without its feature `{feature}`");
    Err(LockError::invalid("url", reason))
}

//! A way in which the URLs of a store begin; each store lists its own.

use std::sync::Arc;

use crate::backend::Target;
use crate::types::error::LockError;
use crate::types::url::Url;

/// One way in which the URLs of a store begin.
pub(crate) struct Scheme {
    /// As it is written: `redis://`.
    pub(super) start: &'static str,
    /// Whether connections are encrypted.
    pub(super) encrypted: bool,
    pub(super) parse: Parse,
}

/// Reads a URL and takes the store's own parameters out of it; `true` if connections are
/// to be encrypted.
type Parse = fn(&mut Url, bool) -> Result<Arc<dyn Target>, LockError>;

impl Scheme {
    pub(crate) const fn plain(start: &'static str, parse: Parse) -> Self {
        let encrypted = false;
        Self {
            start,
            encrypted,
            parse,
        }
    }

    pub(crate) const fn encrypted(start: &'static str, parse: Parse) -> Self {
        let encrypted = true;
        Self {
            start,
            encrypted,
            parse,
        }
    }

    /// Without what follows it.
    pub(super) fn name(&self) -> &'static str {
        self.start
            .split_once(':')
            .map_or(self.start, |(name, _)| name)
    }
}

/// For a URL that needs a feature of the crate.
pub(crate) fn without(feature: &str) -> String {
    format!(
        "lock-runtime was built without its feature `{feature}`: add it to the `features` of the dependency"
    )
}

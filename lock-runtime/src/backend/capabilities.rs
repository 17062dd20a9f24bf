//! The capabilities of a store.

use crate::types::error::LockError;
use crate::types::key::LockKey;

/// The abilities of a store's locks. A request for anything else is refused with
/// [`LockError::InvalidOptions`](crate::LockError::InvalidOptions) before anything
/// is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a capability of its own"
)]
pub struct Capabilities {
    /// The name of the store, for messages.
    pub store: &'static str,
    /// Readers share a lock.
    pub read: bool,
    /// A writer can go on as a reader: [`LockGuard::downgrade`](crate::LockGuard::downgrade).
    pub downgrade: bool,
    /// A lock can be shared by a number of holders with a permit each.
    pub permits: bool,
    /// One holder can take several permits.
    pub take: bool,
    /// Several keys are taken all or none.
    pub several_keys: bool,
    /// A lock can cool down after its release.
    pub min_hold: bool,
    /// The locks that are held can be listed.
    pub list: bool,
    /// A lock can be revoked.
    pub force_release: bool,
    /// The holders of a lock can be asked to yield.
    pub ask: bool,
    /// The last grants of a lock can be remembered: [`LockConfig::history`](crate::LockConfig::history).
    pub history: bool,
    /// Every exclusive acquisition has a larger fencing token than those before it.
    pub fencing: bool,
    /// Waiters are served in the order in which they came.
    pub fair: bool,
    /// The number of waiters of a lock can be limited.
    pub max_waiters: bool,
    /// A lock can be handed over by a [`Ticket`](crate::Ticket).
    pub tickets: bool,
    /// A [`Status`](crate::inspect::Status) says whether the processes of the holders answer.
    pub answers: bool,
    /// It is known which locks a waiter holds: [`LockManager::graph`](crate::LockManager::graph).
    pub graph: bool,
    /// Which names are names of the same lock.
    pub(crate) names: Names,
}

/// What the store makes of the name of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// It keeps the escapes: different names are different locks.
    Escaped,
    /// It writes the text: names that differ by their escapes only are one lock.
    #[cfg(feature = "redis")]
    Text,
    /// The same, and it has keys of its own that are the text and one of these behind it.
    #[cfg(feature = "redis")]
    TextBeside(&'static [&'static str]),
}

impl Capabilities {
    /// The one name of a lock that may have several.
    pub(crate) fn name(&self, key: LockKey) -> Result<LockKey, LockError> {
        match self.names {
            Names::Escaped => Ok(key),
            #[cfg(feature = "redis")]
            Names::Text => of_text(&key, &[]),
            #[cfg(feature = "redis")]
            Names::TextBeside(reserved) => of_text(&key, reserved),
        }
    }

    /// The error for an argument or a call that the store does not support.
    pub(crate) fn lacks(&self, name: &'static str) -> LockError {
        LockError::invalid(
            name,
            format_args!("the store `{}` does not support it", self.store),
        )
    }

    /// The error of a store where a writer cannot go on as a reader.
    pub(crate) fn lacks_downgrade(&self) -> LockError {
        let why = if self.read {
            "release the lock and take it as a reader"
        } else {
            "it has no readers"
        };
        LockError::invalid(
            "downgrade",
            format_args!("the store `{}` does not support it: {why}", self.store),
        )
    }

    /// The error of a store where each holder has one permit.
    pub(crate) fn lacks_take(&self) -> LockError {
        LockError::invalid(
            "take",
            format_args!(
                "the store `{}` does not support it: each holder has one permit there",
                self.store
            ),
        )
    }

    /// The error of a store that keeps no history.
    pub(crate) fn lacks_history(&self) -> LockError {
        LockError::invalid(
            "history",
            format_args!(
                "the store `{}` does not support it: it needs one server, or one cluster, that sees every grant \
                 and every release, and keeps notes, as `redis://` and `postgres://` do",
                self.store
            ),
        )
    }

    /// The error of a store that does not know who waits for whom.
    pub(crate) fn lacks_graph(&self) -> LockError {
        LockError::invalid(
            "graph",
            format_args!(
                "the store `{}` does not support it: it needs one list of all locks, whose holders \
                 and waiters are known by one name each",
                self.store
            ),
        )
    }

    /// Those of a store that supports everything.
    pub(crate) const fn all(store: &'static str) -> Self {
        Self {
            store,
            read: true,
            downgrade: true,
            permits: true,
            take: true,
            several_keys: true,
            min_hold: true,
            list: true,
            force_release: true,
            ask: true,
            history: true,
            fencing: true,
            fair: true,
            max_waiters: true,
            tickets: true,
            answers: true,
            graph: true,
            names: Names::Escaped,
        }
    }

    /// Those of a store that can do nothing but lock.
    #[cfg(test)]
    pub(crate) const fn none(store: &'static str) -> Self {
        Self {
            store,
            read: false,
            downgrade: false,
            permits: false,
            take: false,
            several_keys: false,
            min_hold: false,
            list: false,
            force_release: false,
            ask: false,
            history: false,
            fencing: false,
            fair: false,
            max_waiters: false,
            tickets: false,
            answers: false,
            graph: false,
            names: Names::Escaped,
        }
    }
}

#[cfg(feature = "redis")]
fn of_text(key: &LockKey, reserved: &[&str]) -> Result<LockKey, LockError> {
    let text = key.text();
    if reserved.iter().any(|it| text.ends_with(it)) {
        let reason = "with plain keys, a name that ends in `:q`, `:s`, `:h` or `:l` is that of another lock's queue";
        return Err(LockError::InvalidKey { reason });
    }
    LockKey::read(&text).map_err(|reason| LockError::InvalidKey { reason })
}

//! The last grants of a lock, as far back as its store remembers them.

use std::fmt;
use std::time::{Duration, SystemTime};

use crate::types::fence::FencingToken;
use crate::types::holder::Holder;
use crate::types::kind::Kind;
#[cfg(feature = "serde")]
use crate::types::units;

/// How long a store remembers the last grants of a lock that nobody takes any more.
pub(crate) const REMEMBERED: Duration = Duration::from_secs(32 * 24 * 60 * 60);

/// A time for which somebody held a lock; see [`LockManager::history`](crate::LockManager::history).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Grant {
    /// The value that identified the acquisition in the store.
    pub id: Box<str>,
    /// The number of the process that held the lock.
    pub process: Option<u32>,
    /// The name of its machine.
    pub host: Option<Box<str>>,
    /// The function that held it, as [`Holder::function`].
    pub function: Option<Box<str>>,
    /// How it was held.
    pub kind: Kind,
    /// Its fencing token.
    pub fencing_token: FencingToken,
    /// When it was granted, by the clock of the store.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "since_unix_ms", serialize_with = "units::unix_millis")
    )]
    pub since: SystemTime,
    /// When it ended; `None` while the lock is held. Of a lease that expired it is the next grant of
    /// the lock, by which it had ended, or `None` if there was none or the lock was shared.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "until_unix_ms", serialize_with = "units::unix_millis")
    )]
    pub until: Option<SystemTime>,
    /// How it ended; `None` while the lock is held.
    pub end: Option<GrantEnd>,
}

/// How a [`Grant`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GrantEnd {
    /// The holder released the lock, or gave it up when its work was cancelled or stopped.
    Released,
    /// The lease ended without a release: the process was killed, stopped or cut off.
    Expired,
    /// The lock was [revoked](crate::LockManager::force_release).
    Revoked,
}

/// Completes a history that has the oldest grant first: those without an end that nobody holds
/// have expired, by the time of the next grant at the latest.
pub(crate) fn note_expired(grants: &mut [Grant], is_held: impl Fn(&Grant) -> bool) {
    let mut next = None;
    for grant in grants.iter_mut().rev() {
        if grant.end.is_none() && !is_held(grant) {
            grant.end = Some(GrantEnd::Expired);
            grant.until = next.filter(|_| grant.kind == Kind::Exclusive);
        }
        next = Some(grant.since);
    }
}

impl Grant {
    pub(crate) fn new(
        holder: Holder,
        kind: Kind,
        fencing_token: FencingToken,
        since: SystemTime,
    ) -> Self {
        Self {
            id: holder.id,
            process: holder.process,
            host: holder.host,
            function: holder.function,
            kind,
            fencing_token,
            since,
            until: None,
            end: None,
        }
    }

    /// For how long the lock was held; `None` if that is not known, or it is held still.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:?history=10").await?;
    /// locks.lock("nightly").run(async |_| ()).await?;
    /// if let Some(last) = locks.last("nightly").await? {
    ///     println!("the last run took {:?}", last.duration());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn duration(&self) -> Option<Duration> {
        self.until?.duration_since(self.since).ok()
    }
}

/// `released`, `expired` or `revoked`.
impl fmt::Display for GrantEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        })
    }
}

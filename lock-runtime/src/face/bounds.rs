//! The bounds of times, checked by the compiler in constants and at run time.

use std::time::Duration;

use crate::vocabulary::error::LockError;

/// The shortest lease.
pub(crate) const MIN_TTL: Duration = Duration::from_millis(100);
/// The longest lease, and the longest that a lock is held or closed on purpose.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// The shortest time for which a lock is held at most: with less, several keys that
/// are taken one after the other would be begun anew without end.
pub(crate) const MIN_HOLD: Duration = Duration::from_millis(10);

/// A setting that cannot be, and the rule that it breaks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) setting: &'static str,
    pub(crate) rule: &'static str,
    /// Both, for errors of the compiler.
    pub(crate) sentence: &'static str,
}

macro_rules! fault {
    ($setting:literal, $rule:literal) => {
        Err(Fault {
            setting: $setting,
            rule: $rule,
            sentence: concat!("`", $setting, "` ", $rule),
        })
    };
}
pub(crate) use fault;

pub(crate) const fn check_ttl(ttl: Duration) -> Result<(), Fault> {
    if longer(MIN_TTL, ttl) {
        return fault!("ttl", "must be at least 100ms");
    }
    if longer(ttl, MAX_TTL) {
        return fault!("ttl", "must be at most 24h");
    }
    Ok(())
}

pub(crate) const fn longer(one: Duration, other: Duration) -> bool {
    one.as_nanos() > other.as_nanos()
}

impl From<Fault> for LockError {
    fn from(fault: Fault) -> Self {
        Self::invalid(fault.setting, format_args!("it {}", fault.rule))
    }
}

//! The bounds of durations, checked in constants by the compiler, and at run time.

use std::time::Duration;

use crate::types::error::LockError;
use crate::types::kind::Kind;
use crate::types::terms::Wait;

/// The shortest lease.
pub(crate) const MIN_TTL: Duration = Duration::from_millis(100);
/// The longest lease, `min_hold` and `max_hold`.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// The shortest `max_hold`: with less, a request for several keys would restart without end.
pub(crate) const MIN_HOLD: Duration = Duration::from_millis(10);

/// A setting out of bounds, and the rule that it breaks.
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

/// A try waits for nobody, so that the number of waiters says nothing to it.
pub(crate) const fn check_waiters(
    max_waiters: Option<u32>,
    wait: Option<Wait>,
) -> Result<(), Fault> {
    match (max_waiters, wait) {
        (Some(0), _) => fault!(
            "max_waiters",
            "must be at least 1: `wait = \"0s\"` is for those that are not to wait"
        ),
        (Some(_), Some(Wait::AtMost(Duration::ZERO))) => {
            fault!(
                "max_waiters",
                "excludes `wait = \"0s\"`, with which nobody waits"
            )
        }
        _ => Ok(()),
    }
}

/// The most permits that one holder takes: a store may keep a lease for each.
const MOST_TAKEN: u32 = 1_000;

/// What is taken of the permits, as far as their number is known.
pub(crate) const fn check_take(take: Option<u32>, kind: Kind) -> Result<(), Fault> {
    match (take, kind) {
        (Some(0), _) => fault!("take", "must be at least 1"),
        (Some(MOST_TAKEN..), _) => fault!("take", "must be less than 1000"),
        (Some(take), Kind::Permits(most)) if take > most => {
            fault!(
                "take",
                "must be at most `permits`, or nobody could take them"
            )
        }
        _ => Ok(()),
    }
}

/// A server forgets no lease that is longer than its `quarantine` expects.
pub(crate) fn check_longest(ttl: Duration, longest: Duration) -> Result<(), LockError> {
    if ttl <= longest {
        return Ok(());
    }
    let reason = format_args!("it is {ttl:?}, and `quarantine` allows {longest:?} at most");
    Err(LockError::invalid("ttl", reason))
}

pub(crate) const fn longer(one: Duration, other: Duration) -> bool {
    one.as_nanos() > other.as_nanos()
}

impl From<Fault> for LockError {
    fn from(fault: Fault) -> Self {
        Self::invalid(fault.setting, format_args!("it {}", fault.rule))
    }
}

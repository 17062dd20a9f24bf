//! Times as whole numbers of a unit, for serialised answers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize as _, Serializer};

pub(crate) fn millis<S: Serializer>(
    time: &(impl Copy + Into<Option<Duration>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    number((*time).into().map(|it| it.as_millis()), serializer)
}

pub(crate) fn micros<S: Serializer>(
    time: &(impl Copy + Into<Option<Duration>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    number((*time).into().map(|it| it.as_micros()), serializer)
}

pub(crate) fn unix_millis<S: Serializer>(
    at: &(impl Copy + Into<Option<SystemTime>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let since_1970 = |at: SystemTime| at.duration_since(UNIX_EPOCH).ok();
    millis(&(*at).into().and_then(since_1970), serializer)
}

fn number<S: Serializer>(number: Option<u128>, serializer: S) -> Result<S::Ok, S::Error> {
    let number = number.map(|it| u64::try_from(it).unwrap_or(u64::MAX));
    number.serialize(serializer)
}

//! How clients of the setnx protocol write times, as a URL says.

use std::time::Duration;

use crate::types::duration;
use crate::types::error::LockError;
use crate::types::url::Url;

/// How a time is written, and what it means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setnx {
    unit: Unit,
    /// The time from the written value to the end of the holder's time.
    offset: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Unit {
    #[default]
    Millis,
    Seconds,
    /// Seconds with a fraction.
    Float,
}

impl Setnx {
    /// Reads `stamp=ms|s|float` and `offset=DURATION`.
    pub(crate) fn parse(url: &mut Url) -> Result<Self, LockError> {
        let unit = match url.take("stamp")?.as_deref() {
            None | Some("ms") => Unit::Millis,
            Some("s") => Unit::Seconds,
            Some("float") => Unit::Float,
            Some(_) => {
                return Err(LockError::invalid(
                    "stamp",
                    "it can only be `ms`, `s` or `float` (seconds with a fraction): write what the other clients write",
                ));
            }
        };
        let offset = url
            .take("offset")?
            .map_or(Ok(Duration::ZERO), |text| duration::parse(&text))
            .map_err(|reason| LockError::invalid("offset", reason))?;
        Ok(Self { unit, offset })
    }

    /// The last arguments of every script.
    pub(super) fn arguments(self) -> (&'static str, u128) {
        let unit = match self.unit {
            Unit::Millis => "ms",
            Unit::Seconds => "s",
            Unit::Float => "float",
        };
        (unit, self.offset.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Setnx, LockError> {
        Setnx::parse(&mut Url::parse(&format!("redis+setnx://h?{query}"))?)
    }

    #[test]
    fn a_url_says_how_times_are_written() {
        for (query, arguments) in [
            ("", ("ms", 0)),
            ("stamp=ms", ("ms", 0)),
            ("stamp=s&offset=1m+30s", ("s", 90_000)),
            ("stamp=float", ("float", 0)),
        ] {
            assert_eq!(read(query).expect(query).arguments(), arguments);
        }
        for (query, says) in [
            ("stamp=seconds", "invalid stamp"),
            ("offset=10", "invalid offset"),
        ] {
            let error = read(query).expect_err(query).to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }
}

//! Durations as users write them, `1m 30s`, and as they read them.

use std::time::{Duration, SystemTime};

use jiff::{Timestamp, Zoned, tz::TimeZone};

/// From large to small, as they have to be written.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    AtMost(Duration),
    Forever,
}

/// Reads a duration, or says what to write instead.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || "write numbers with the units h, m, s and ms, as in 1m30s or 500ms".to_owned();
    let mut rest = text.trim();
    let mut units = &UNITS[..];
    let mut total = 0_u64;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let (number, after) = split(rest, |c| c.is_ascii_digit());
        let (unit, after) = split(after, char::is_alphabetic);
        let rank = units.iter().position(|(name, _)| *name == unit);
        let rank = rank.ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let sum = number
            .checked_mul(units[rank].1)
            .and_then(|millis| total.checked_add(millis));
        total = sum.ok_or_else(wrong)?;
        units = &units[rank + 1..];
        rest = after.trim_start();
    }
    Ok(Duration::from_millis(total))
}

/// Reads a duration or `forever`.
pub(crate) fn parse_wait(text: &str) -> Result<Wait, String> {
    match text.trim() {
        "forever" => Ok(Wait::Forever),
        text => parse(text)
            .map(Wait::AtMost)
            .map_err(|error| format!("{error}, or forever")),
    }
}

/// Reads how often to look, which is a load for the store.
pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    match parse(text)? {
        time if time < Duration::from_millis(50) => Err("50ms is the shortest".to_owned()),
        time => Ok(time),
    }
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// A duration in its two largest units.
pub(crate) fn short(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) if seconds < 1 => format!("{}ms", time.as_millis()),
        (0, 0, 0) if seconds < 10 => format!("{seconds}.{}s", time.subsec_millis() / 100),
        (0, 0, 0) => format!("{rest}s"),
        (0, 0, _) => format!("{minutes}m {rest:02}s"),
        (0, _, _) => format!("{hours}h {minutes:02}m"),
        _ => format!("{days}d {hours:02}h"),
    }
}

/// A moment by the clock of this machine, with its date unless that is today's.
pub(crate) fn clock(at: SystemTime) -> String {
    let at = Timestamp::try_from(at).unwrap_or(Timestamp::UNIX_EPOCH);
    let at = at.to_zoned(TimeZone::system());
    let format = if at.date() == Zoned::now().date() {
        "%H:%M:%S"
    } else {
        "%b %d %H:%M"
    };
    at.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_was_written() {
        for (text, millis) in [
            ("10s", 10_000),
            ("1m 30s", 90_000),
            ("1m30s", 90_000),
            ("500ms", 500),
            ("2h", 7_200_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "10", "s", "30s 1m", "1d", "-1s", "99999999999999999h"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse_wait("forever"), Ok(Wait::Forever));
    }

    #[test]
    fn what_is_shown_has_two_units_at_most() {
        for (millis, text) in [
            (12, "12ms"),
            (1_250, "1.2s"),
            (42_000, "42s"),
            (62_000, "1m 02s"),
            (3_720_000, "1h 02m"),
            (90_000_000, "1d 01h"),
        ] {
            assert_eq!(short(Duration::from_millis(millis)), text);
        }
    }
}

//! Durations as the attribute writes them: `"1m 30s"`.

use std::fmt;
use std::str::FromStr;

/// In descending order, as they must be written.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A whole number of milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Millis(pub(crate) u64);

/// Why a text is not a duration: one sentence that says what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DurationError {
    Empty,
    NoUnit(String),
    /// The number, and the unit that follows a gap.
    Gap(String, &'static str),
    UnknownUnit(String),
    Fraction(String),
    Unexpected(char),
    Order(String),
    TooLong,
}

impl FromStr for Millis {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(DurationError::Empty);
        }
        let mut total: u64 = 0;
        let mut smallest = None;
        while !rest.is_empty() {
            let (rank, millis, after) = component(rest)?;
            if smallest.is_some_and(|smallest| rank <= smallest) {
                return Err(DurationError::Order(text.to_owned()));
            }
            smallest = Some(rank);
            total = total.checked_add(millis).ok_or(DurationError::TooLong)?;
            rest = after.trim_start();
        }
        Ok(Millis(total))
    }
}

/// The first number with its unit: the unit's rank, the milliseconds, and the text after it.
fn component(text: &str) -> Result<(usize, u64, &str), DurationError> {
    let (number, rest) = split(text, |c| c.is_ascii_digit());
    if number.is_empty() {
        // The text is not empty, so the blank is never used.
        return Err(DurationError::Unexpected(
            text.chars().next().unwrap_or(' '),
        ));
    }
    if rest.starts_with('.') {
        let (fraction, _) = split(text, |c| !c.is_whitespace());
        return Err(DurationError::Fraction(fraction.to_owned()));
    }
    let (unit, rest) = split(rest, char::is_alphabetic);
    if unit.is_empty() {
        return Err(without_unit(number, rest));
    }
    let rank = UNITS
        .iter()
        .position(|(name, _)| *name == unit)
        .ok_or_else(|| DurationError::UnknownUnit(unit.to_owned()))?;
    let number: u64 = number.parse().map_err(|_| DurationError::TooLong)?;
    let millis = number
        .checked_mul(UNITS[rank].1)
        .ok_or(DurationError::TooLong)?;
    Ok((rank, millis, rest))
}

/// What is wrong with a number that is not followed by a letter.
fn without_unit(number: &str, rest: &str) -> DurationError {
    if let Some(other) = rest.chars().next().filter(|it| !it.is_whitespace()) {
        return DurationError::Unexpected(other);
    }
    let (word, _) = split(rest.trim_start(), char::is_alphabetic);
    match UNITS.iter().find(|(unit, _)| *unit == word) {
        Some((unit, _)) => DurationError::Gap(number.to_owned(), unit),
        None => DurationError::NoUnit(number.to_owned()),
    }
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        let mut gap = "";
        for (unit, millis) in UNITS {
            let count = rest / millis;
            rest %= millis;
            if count > 0 {
                write!(f, "{gap}{count}{unit}")?;
                gap = " ";
            }
        }
        if self.0 == 0 {
            f.write_str("0s")?;
        }
        Ok(())
    }
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(
                f,
                "an empty text is not a duration: write for example `\"10s\"`"
            ),
            Self::NoUnit(number) => write!(
                f,
                "`{number}` has no unit: write `\"{number}s\"` for seconds (the units are ms, s, m and h)"
            ),
            Self::Gap(number, unit) => write!(
                f,
                "the unit follows its number without a gap: write `\"{number}{unit}\"`"
            ),
            Self::UnknownUnit(unit) => write!(
                f,
                "`{unit}` is not a unit of time: use ms, s, m or h, as in `\"1m 30s\"`"
            ),
            Self::Fraction(text) => write!(
                f,
                "`{text}` is not a whole number: use a smaller unit, as in `\"1500ms\"`"
            ),
            Self::Unexpected(c) => write!(
                f,
                "`{c}` does not belong in a duration: write numbers with units, as in `\"1m 30s\"`"
            ),
            Self::Order(text) => write!(
                f,
                "`{text}` is out of order: write each unit once and the larger first, as in `\"1m 30s\"`"
            ),
            Self::TooLong => write!(f, "this duration is too long: the longest is `\"24h\"`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_prints() {
        for (text, millis, printed) in [
            ("10s", 10_000, "10s"),
            ("1500ms", 1_500, "1s 500ms"),
            ("1m 30s", 90_000, "1m 30s"),
            ("1m30s", 90_000, "1m 30s"),
            ("  1h  1ms ", 3_600_001, "1h 1ms"),
            ("0s", 0, "0s"),
            ("0ms", 0, "0s"),
            ("90m", 5_400_000, "1h 30m"),
        ] {
            let parsed: Millis = text.parse().unwrap();
            assert_eq!(parsed, Millis(millis), "{text}");
            assert_eq!(parsed.to_string(), printed, "{text}");
            assert_eq!(printed.parse(), Ok(parsed), "{text}");
        }
        let longest = Millis(u64::MAX);
        assert_eq!(longest.to_string().parse(), Ok(longest));
    }

    #[test]
    fn says_what_is_wrong() {
        use DurationError::{
            Empty, Fraction, Gap, NoUnit, Order, TooLong, Unexpected, UnknownUnit,
        };
        for (text, error) in [
            ("", Empty),
            (" ", Empty),
            ("10", NoUnit("10".into())),
            ("10 s", Gap("10".into(), "s")),
            ("10 days", NoUnit("10".into())),
            ("1m 30", NoUnit("30".into())),
            ("3d", UnknownUnit("d".into())),
            ("10S", UnknownUnit("S".into())),
            ("5é", UnknownUnit("é".into())),
            ("1.5s", Fraction("1.5s".into())),
            ("-1s", Unexpected('-')),
            ("10_000ms", Unexpected('_')),
            ("soon", Unexpected('s')),
            ("30s 1m", Order("30s 1m".into())),
            ("1s 1s", Order("1s 1s".into())),
            ("18446744073709551616ms", TooLong),
            ("18446744073709551615h", TooLong),
            ("5124095576030h 18446744073709551615ms", TooLong),
        ] {
            assert_eq!(text.parse::<Millis>(), Err(error), "{text}");
        }
    }
}

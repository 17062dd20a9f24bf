//! Durations as the attribute writes them: `"1m 30s"`.

use std::time::Duration;

use crate::types::terms::Wait;

/// In descending order, as they must be written.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

const EXAMPLE: &str =
    "write numbers with the units h, m, s and ms, the larger first, as in `1m 30s` or `1500ms`";

/// Reads a duration; the error says what to write instead.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration: {EXAMPLE}");
    let mut rest = text.trim();
    let mut total = 0_u64;
    let mut units = &UNITS[..];
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let (number, after) = split(rest, |c| c.is_ascii_digit());
        let (unit, after) = split(after, char::is_alphabetic);
        let rank = units.iter().position(|(name, _)| *name == unit);
        let rank = rank.ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let millis = number.checked_mul(units[rank].1);
        let sum = millis.and_then(|millis| total.checked_add(millis));
        total = sum.ok_or_else(wrong)?;
        units = &units[rank + 1..];
        rest = after.trim_start();
    }
    Ok(Duration::from_millis(total))
}

/// Reads a duration or `forever`.
pub(crate) fn parse_wait(text: &str) -> Result<Wait, String> {
    if text.trim() == "forever" {
        return Ok(Wait::Forever);
    }
    let duration = parse(text).map_err(|error| format!("{error}, or `forever`"))?;
    Ok(Wait::AtMost(duration))
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_attribute_reads() {
        for (text, millis) in [
            ("10s", 10_000),
            ("1500ms", 1_500),
            ("1m 30s", 90_000),
            ("1m30s", 90_000),
            ("  1h  1ms ", 3_600_001),
            ("0s", 0),
            ("18446744073709551615ms", u64::MAX),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn refuses_what_the_attribute_refuses() {
        for text in [
            "",
            " ",
            "10",
            "10 s",
            "1m 30",
            "3d",
            "10S",
            "5é",
            "1.5s",
            "-1s",
            "10_000ms",
            "soon",
            "30s 1m",
            "1s 1s",
            "18446744073709551616ms",
            "18446744073709551615h",
            "s",
            "5124095576030h 18446744073709551615ms",
            "forever",
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains("`1m 30s`"), "{error}");
        }
        assert_eq!(parse_wait("forever"), Ok(Wait::Forever));
        assert!(parse_wait("never").is_err_and(|error| error.ends_with("or `forever`")));
    }
}

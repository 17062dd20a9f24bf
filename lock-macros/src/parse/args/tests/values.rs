//! What values are read as, and what is said about those of another form.

use super::*;
use crate::parse::values::{Count, too_few};

#[test]
fn reads_permits() {
    for (written, number) in [("1", 1), ("0x10", 16), ("4_294_967_295", u32::MAX)] {
        let (args, mistakes) = parse(&format!("key = \"a\", permits = {written}"));
        assert_eq!(mistakes, [""; 0], "{written}");
        assert!(
            matches!(args.permits, Some(Count::Number(read, _)) if read == number),
            "{written}"
        );
    }
}

#[test]
fn says_what_is_wrong() {
    for (argument, message) in [
        (
            "ttl = 10",
            "`ttl` is a text with a number and a unit: write `ttl = \"10s\"`",
        ),
        (
            "ttl = 500ms",
            "`ttl` is a text with a number and a unit: write `ttl = \"500ms\"`",
        ),
        (
            "wait = true",
            "`wait` is a text with a number and a unit: write `wait = \"10s\"`",
        ),
        (
            "ttl = \"10\"",
            "in `ttl`, `10` has no unit: write `\"10s\"` for seconds (the units are ms, s, m and h)",
        ),
        (
            "ttl = -5",
            "`ttl` is a text with a number and a unit: write `ttl = \"5s\"`",
        ),
        (
            "renew = \"no\"",
            "`renew` is `true` or `false`: write `renew = false` for a lease of fixed length",
        ),
        (
            "release = \"async\"",
            "`release` is `\"detached\"` (return at once) or `\"confirmed\"` (wait for the server's answer)",
        ),
        (
            "on_error = Ok(())",
            "`on_error` is a function from `LockError` to what this function returns: write `on_error = |error| …` or its path",
        ),
        (
            "guard = \"lock\"",
            "`guard` is the name that the lock gets in the body: write `guard = lock`",
        ),
        (
            "crate = \"other\"",
            "`crate` is a path without quotes: write `crate = my_crate::lock_runtime`",
        ),
        (
            "max_hold = \"1h 24h\"",
            "in `max_hold`, `1h 24h` is out of order: write each unit once and the larger first, as in `\"1m 30s\"`",
        ),
        (
            "mode = \"shared\"",
            "`mode` is `\"exclusive\"` (one at a time), `\"read\"` (readers share) or `\"write\"` (a writer is alone)",
        ),
        (
            "on_lost = continue",
            "`on_lost` is `\"cancel\"` (stop the body) or `\"notify\"` (let it run on, and ask its guard)",
        ),
        (
            "reentrant = \"yes\"",
            "`reentrant` is `true` or `false`: write `reentrant = true` to let the body take its own lock again",
        ),
    ] {
        assert_eq!(mistake(argument), message, "{argument}");
    }
}

#[test]
fn says_what_is_wrong_with_permits() {
    for (permits, message) in [
        ("-4", &*too_few("permits")),
        (
            "8u64",
            "`permits` takes its number without a suffix: write `permits = 8`",
        ),
        (
            "4_294_967_296",
            "these are too many `permits`: write at most 4294967295",
        ),
        (
            "\"8\"",
            "`permits` is a number without quotes: write `permits = 8`",
        ),
        (
            "\"many\"",
            "`permits` is a number: write for example `permits = 4`",
        ),
        (
            "4.0",
            "`permits` is a number: write for example `permits = 4`",
        ),
    ] {
        assert_eq!(mistake(&format!("permits = {permits}")), message);
    }
}

//! What is said about values, and about values that contradict each other.

use super::*;

#[test]
fn reads_permits() {
    for (written, number) in [("1", 1), ("0x10", 16), ("4_294_967_295", u32::MAX)] {
        let (args, mistakes) = parse(&format!("key = \"a\", permits = {written}"));
        assert_eq!(mistakes, [""; 0], "{written}");
        assert!(
            matches!(args.permits, Some(Permits::Number(read)) if read == number),
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
            "ttl = \"99ms\"",
            "a `ttl` of 99ms is too short to be renewed in time: write at least `\"100ms\"`",
        ),
        (
            "ttl = \"25h\"",
            "a `ttl` of 25h is too long: write at most `\"24h\"`",
        ),
        (
            "wait = \"25h\"",
            "a `wait` of 25h is too long: write at most `\"24h\"`, or `\"forever\"`",
        ),
        (
            "ttl = -5",
            "`ttl` is a text with a number and a unit: write `ttl = \"5s\"`",
        ),
        (
            "ttl = Duration::from_secs(1)",
            "`ttl` must be known when the program is compiled: write `ttl = \"10s\"`, or the name of a constant of type `Duration`",
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
            "ttl = \"forever\"",
            "a `ttl` cannot be `\"forever\"`, or a crash would lock for ever: write for example `\"10s\"`, which is renewed while the function runs",
        ),
        (
            "min_hold = \"forever\"",
            "a `min_hold` cannot be `\"forever\"`, or nobody would get the lock again: write for example `\"1m\"`",
        ),
        (
            "max_hold = \"forever\"",
            "a `max_hold` cannot be `\"forever\"`: leave it out, and the lock is renewed for as long as the function runs",
        ),
        (
            "min_hold = \"0ms\"",
            "a `min_hold` of 0s changes nothing: write for example `\"1m\"`, or leave it out",
        ),
        (
            "max_hold = \"0s\"",
            "a `max_hold` of 0s would end before the body begins: write for example `\"10m\"`, or leave it out",
        ),
        (
            "max_hold = \"1h 24h\"",
            "in `max_hold`, `1h 24h` is out of order: write each unit once and the larger first, as in `\"1m 30s\"`",
        ),
        (
            "max_hold = \"25h\"",
            "a `max_hold` of 25h is too long: write at most `\"24h\"`",
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
    let too_few =
        "`permits` is how many may hold the lock at once: write at least 1, as in `permits = 4`";
    let not_known = "`permits` must be known when the program is compiled: write `permits = 4`, or the name of a constant of type `u32`";
    for (permits, message) in [
        ("0", too_few),
        ("-4", too_few),
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
        ("2 + 2", not_known),
        ("limit()", not_known),
    ] {
        assert_eq!(mistake(&format!("permits = {permits}")), message);
    }
}

#[test]
fn says_what_contradicts() {
    for (arguments, message) in [
        (
            "mode = \"exclusive\", permits = 2",
            "`mode = \"exclusive\"` and `permits` exclude each other: permits let several in; keep one of them",
        ),
        (
            "permits = N, mode = \"read\"",
            "`mode = \"read\"` and `permits` exclude each other: readers share without a limit; keep one of them",
        ),
        (
            "mode = \"write\", permits = 2",
            "`mode = \"write\"` and `permits` exclude each other: a writer is alone, and permits let several in; keep one of them",
        ),
        (
            "renew = false, max_hold = \"1m\"",
            "`renew = false` and `max_hold` exclude each other: a fixed lease ends at its `ttl`; keep one of them",
        ),
        (
            "min_hold = \"90s\", max_hold = \"1m\"",
            "a `min_hold` of 1m 30s is longer than a `max_hold` of 1m: shorten the one or lengthen the other",
        ),
    ] {
        assert_eq!(mistake(arguments), message, "{arguments}");
    }
    for fine in [
        "renew = true, max_hold = \"1m\"",
        "renew = false, min_hold = \"1m\"",
        "min_hold = \"1m\", max_hold = \"1m\"",
        "min_hold = MIN, max_hold = \"1s\"",
        "mode = \"read\", reentrant = true",
    ] {
        assert_eq!(mistakes(&format!("key = \"a\", {fine}")), [""; 0]);
    }
}

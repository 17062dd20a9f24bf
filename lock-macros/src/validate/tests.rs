//! What is said about attributes that are well-formed.

use super::*;
use crate::parse;

/// The mistakes of an attribute above a function with an argument `id`.
fn mistakes(arguments: &str) -> Vec<String> {
    let item = "async fn f(id: u32) -> Result<(), E> {}".parse().unwrap();
    let mut errors = Errors::default();
    let written = parse::attribute(arguments.parse().unwrap(), item, &mut errors);
    match attribute(&written, errors) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.messages(),
    }
}

/// The one mistake of an attribute with a key.
fn mistake(argument: &str) -> String {
    let found = mistakes(&format!("key = \"a\", {argument}"));
    assert_eq!(found.len(), 1, "{argument}: {found:?}");
    found.into_iter().next().unwrap()
}

#[test]
fn wants_a_key() {
    let missing = "the lock has no name: add `key = \"…\"`, with arguments of the function in braces, as in `key = \"stock:{id}\"`";
    assert_eq!(mistakes(""), [missing]);
    assert_eq!(mistakes("ttl = \"1s\""), [missing]);
    for written in ["\"a\"", "kye = \"a\"", "key = 1"] {
        assert!(
            !mistakes(written).contains(&missing.to_owned()),
            "{written}"
        );
    }
}

#[test]
fn reports_the_mistakes_of_all_stages_at_once() {
    let found = mistakes(r#"key = ["{id}{id}", "{idd.x}"], ttl = 10, wait = "25h", guard = id"#);
    assert_eq!(found.len(), 5, "{found:#?}");
}

#[test]
fn says_which_key_is_repeated() {
    let twice = "this key is in the array already: name another lock, or remove it";
    assert_eq!(
        mistakes(r#"key = ["a:{id}", "c", r"a:{id}", "a:{{id}}"]"#),
        [twice]
    );
}

#[test]
fn says_what_is_out_of_limits() {
    for (argument, message) in [
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
            "max_hold = \"5ms\"",
            "a `max_hold` of 5ms is too short: write at least `\"10ms\"`",
        ),
        (
            "permits = 2000, take = 1500",
            "a `take` of 1500 is too many: write at most 999",
        ),
        (
            "max_hold = \"25h\"",
            "a `max_hold` of 25h is too long: write at most `\"24h\"`",
        ),
        (
            "permits = 4, take = 0",
            "`take` is how many of the `permits` a call takes: write at least 1, as in `take = 2`",
        ),
        (
            "permits = 0",
            "`permits` is how many may hold the lock at once: write at least 1, as in `permits = 4`",
        ),
        (
            "max_waiters = 0",
            "`max_waiters` is how many may wait for the lock, and nobody waits with `wait = \"0s\"`: write at least 1, as in `max_waiters = 8`",
        ),
    ] {
        assert_eq!(mistake(argument), message, "{argument}");
    }
}

#[test]
fn does_not_say_of_what_is_out_of_limits_that_it_contradicts() {
    for refused in [
        "max_hold = \"0s\", min_hold = \"1m\"",
        "max_hold = \"25h\", renew = false",
        "permits = 0, mode = \"read\"",
    ] {
        mistake(refused);
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
            "take = 2",
            "`take` is how many of the `permits` a call takes: write both, as in `permits = 4, take = 2`",
        ),
        (
            "permits = 4, take = 5",
            "a `take` of 5 is more than 4 `permits`, so that nobody could take them: write at most `take = 4`",
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
        (
            "max_waiters = 8, wait = \"0s\"",
            "`wait = \"0s\"` and `max_waiters` exclude each other: nobody waits who tries once; keep one of them",
        ),
    ] {
        assert_eq!(mistake(arguments), message, "{arguments}");
    }
    for (argument, message) in [
        (
            "key = \"a\"",
            "`ticket` and `key` exclude each other: the ticket names its lock; keep one of them",
        ),
        (
            "permits = 2",
            "`ticket` and `permits` exclude each other: the lock is held as its former holder held it; keep one of them",
        ),
        (
            "mode = \"read\"",
            "`ticket` and `mode` exclude each other: the lock is held as its former holder held it; keep one of them",
        ),
        (
            "max_waiters = 8",
            "`ticket` and `max_waiters` exclude each other: an adopter does not wait in the queue; keep one of them",
        ),
        (
            "reentrant = true",
            "`ticket` and `reentrant` exclude each other: a ticket is adopted, and does not re-enter a lock; keep one of them",
        ),
    ] {
        assert_eq!(
            mistakes(&format!("ticket = job.ticket, {argument}")),
            [message]
        );
    }
    assert_eq!(mistakes("ticket = job.ticket, ttl = \"1m\""), [""; 0]);
    for fine in [
        "renew = true, max_hold = \"1m\"",
        "renew = false, min_hold = \"1m\"",
        "min_hold = \"1m\", max_hold = \"1m\"",
        "min_hold = MIN, max_hold = \"1s\"",
        "mode = \"read\", reentrant = true",
    ] {
        assert_eq!(mistakes(&format!("key = \"a\", {fine}")), [""; 0], "{fine}");
    }
}

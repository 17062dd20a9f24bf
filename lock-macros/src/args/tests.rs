//! What the arguments are read as, and what is said about mistakes.

use super::*;
use crate::duration::Millis;

fn parse(tokens: &str) -> (Args, Vec<String>) {
    let mut errors = Errors::default();
    let args = Args::parse(tokens.parse().unwrap(), &mut errors);
    (args, errors.messages())
}

fn mistakes(tokens: &str) -> Vec<String> {
    parse(tokens).1
}

/// The one mistake of an attribute with a key.
fn mistake(argument: &str) -> String {
    let found = mistakes(&format!("key = \"a\", {argument}"));
    assert_eq!(found.len(), 1, "{argument}: {found:?}");
    found.into_iter().next().unwrap()
}

#[test]
fn reads_every_argument() {
    let (args, mistakes) = parse(
        r#"key = "a:{b}", ttl = "1m 30s", wait = "0s", renew = false, release = "confirmed",
           on_error = |error| fallback::<A, B>(error), guard = lock,
           manager = &state.locks, crate = ::other::lock_runtime,"#,
    );
    assert_eq!(mistakes, [""; 0]);
    assert!(args.key.is_some());
    assert!(matches!(args.ttl, Some(Length::Millis(Millis(90_000)))));
    assert!(matches!(
        args.wait,
        Some(Wait::For(Length::Millis(Millis(0))))
    ));
    assert_eq!(args.renew, Some(false));
    assert!(matches!(args.release, Some(Release::Confirmed)));
    assert!(matches!(args.on_error, Some(Expr::Closure(_))));
    assert_eq!(args.guard.unwrap(), "lock");
    assert!(matches!(args.manager, Some(Expr::Reference(_))));
    assert_eq!(args.krate.unwrap().segments.len(), 2);
}

#[test]
fn reads_constants_and_forever() {
    let (args, mistakes) = parse(r#"key = "a", ttl = Self::TTL, wait = "forever""#);
    assert_eq!(mistakes, [""; 0]);
    assert!(matches!(args.ttl, Some(Length::Const(_))));
    assert!(matches!(args.wait, Some(Wait::Forever)));
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
        ("guard", "`guard` needs a value: write `guard = lock`"),
        (
            "ttl: \"1s\"",
            "expected `=` after `ttl`, as in `ttl = \"10s\"`",
        ),
        (
            "ttl = \"forever\"",
            "a `ttl` cannot be `\"forever\"`, or a crash would lock for ever: write for example `\"10s\"`, which is renewed while the function runs",
        ),
        (
            "manager =",
            "`manager` has no value: write `manager = self.locks`",
        ),
        (
            "key = \"b\"",
            "`key` is given more than once: keep one of them",
        ),
        (
            "relase = \"confirmed\"",
            "unknown argument `relase`: did you mean `release`?",
        ),
        (
            "tlt = \"1s\"",
            "unknown argument `tlt`: did you mean `ttl`?",
        ),
        (
            "timeout = \"1s\"",
            "unknown argument `timeout`: the arguments are `key`, `ttl`, `wait`, `renew`, `release`, `on_error`, `guard`, `manager`, `crate`",
        ),
        (
            "renew = true false",
            "expected `,` before the next argument",
        ),
        (
            "; ttl",
            "expected an argument with its name, as in `key = \"stock:{id}\"`",
        ),
    ] {
        assert_eq!(mistake(argument), message, "{argument}");
    }
}

#[test]
fn wants_a_key() {
    let missing = "the lock has no name: add `key = \"…\"`, with arguments of the function in braces, as in `key = \"stock:{id}\"`";
    assert_eq!(mistakes(""), [missing]);
    assert_eq!(mistakes("ttl = \"1s\""), [missing]);
    assert_eq!(
        mistakes("\"stock:{id}\", ttl = \"1s\""),
        ["arguments have names: write `key = \"stock:{id}\"`"]
    );
    assert_eq!(
        mistakes("kye = \"a\""),
        ["unknown argument `kye`: did you mean `key`?"]
    );
    assert_eq!(
        mistakes("key = format!(\"{a}\")"),
        ["`key` is one string literal, with expressions in braces: write `key = \"stock:{id}\"`"]
    );
}

#[test]
fn reports_all_mistakes_at_once() {
    let found = mistakes(
        r#"key = "{a}{b}", ttl = 10, guard, on_error = |a, b| 1 2, renew = 1, wait = "5""#,
    );
    assert_eq!(found.len(), 6, "{found:#?}");
}

//! What the arguments are read as, and what is said about those that cannot be read.

use super::*;
use crate::parse::duration::Millis;

mod keys;
mod values;

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
           min_hold = "1m", mode = "read", reentrant = true, on_lost = "notify",
           on_error = |error| fallback::<A, B>(error), guard = lock,
           manager = &state.locks, crate = ::other::lock_runtime,"#,
    );
    assert_eq!(mistakes, [""; 0]);
    assert!(matches!(args.keys, Some(Keys::One(_))));
    assert!(matches!(args.ttl, Some(Length::Millis(Millis(90_000), _))));
    assert!(matches!(args.wait, Some(Length::Millis(Millis(0), _))));
    assert_eq!(args.renew, Some(false));
    assert!(matches!(
        args.min_hold,
        Some(Length::Millis(Millis(60_000), _))
    ));
    assert!(matches!(args.mode, Some(Mode::Read)));
    assert_eq!(args.reentrant, Some(true));
    assert!(matches!(args.release, Some(Release::Confirmed)));
    assert!(matches!(args.on_lost, Some(OnLost::Notify)));
    assert!(matches!(args.on_error, Some(Expr::Closure(_))));
    assert_eq!(args.guard.unwrap(), "lock");
    assert!(matches!(args.manager, Some(Expr::Reference(_))));
    assert_eq!(args.krate.unwrap().segments.len(), 2);
}

#[test]
fn reads_expressions_and_forever() {
    let (args, mistakes) = parse(
        r#"key = "a", ttl = Self::TTL, wait = "forever", min_hold = self.least,
           max_hold = Duration::from_secs(3), permits = 2 * limits::PERMITS"#,
    );
    assert_eq!(mistakes, [""; 0]);
    assert!(matches!(args.ttl, Some(Length::Expr(Expr::Path(_)))));
    assert!(matches!(args.min_hold, Some(Length::Expr(Expr::Field(_)))));
    assert!(matches!(args.max_hold, Some(Length::Expr(Expr::Call(_)))));
    assert!(matches!(args.permits, Some(Count::Expr(Expr::Binary(_)))));
    assert!(matches!(args.wait, Some(Length::Forever(_))));
}

#[test]
fn says_how_arguments_are_written() {
    for (argument, message) in [
        ("guard", "`guard` needs a value: write `guard = lock`"),
        (
            "ttl: \"1s\"",
            "expected `=` after `ttl`, as in `ttl = \"10s\"`",
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
            "permit = 4",
            "unknown argument `permit`: did you mean `permits`?",
        ),
        (
            "reentrent = true",
            "unknown argument `reentrent`: did you mean `reentrant`?",
        ),
        (
            "max_hodl = \"1m\"",
            "unknown argument `max_hodl`: did you mean `max_hold`?",
        ),
        (
            "min_held = \"1m\"",
            "unknown argument `min_held`: did you mean `min_hold`?",
        ),
        (
            "moed = \"read\"",
            "unknown argument `moed`: did you mean `mode`?",
        ),
        (
            "on_loss = \"notify\"",
            "unknown argument `on_loss`: did you mean `on_lost`?",
        ),
        (
            "on_err = fallback",
            "unknown argument `on_err`: did you mean `on_error`?",
        ),
        (
            "colour = \"red\"",
            "unknown argument `colour`: the arguments are `key`, `ticket`, `ttl`, `wait`, `renew`, `min_hold`, `max_hold`, `mode`, `permits`, `take`, `max_waiters`, `reentrant`, `release`, `on_lost`, `on_error`, `guard`, `manager`, `crate`",
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
fn says_what_the_words_of_other_locks_are_called_here() {
    for (argument, says) in [
        ("timeout = 5", "`wait = \"5s\"`"),
        ("lease = \"1s\"", "`ttl = \"10s\"`"),
        ("expire = \"1s\"", "`ttl = \"10s\"`"),
        ("expiry = \"1s\"", "`ttl = \"10s\"`"),
        ("retry = 3", "`wait = \"5s\"`"),
        ("blocking = false", "`wait = \"0s\"`"),
        ("try = true", "`wait = \"0s\"`"),
        ("shared = true", "`mode = \"read\"`"),
        ("limit = 4", "`permits = 4`"),
        ("wait = \"none\"", "`wait = \"0s\"`"),
    ] {
        let text = mistake(argument);
        assert!(text.contains(says), "{text}");
    }
    let named = mistakes("name = \"a\"");
    assert!(
        named.len() == 1 && named[0].contains("`key = "),
        "{named:?}"
    );
}

#[test]
fn says_that_a_key_has_a_name() {
    assert_eq!(
        mistakes("\"stock:{id}\", ttl = \"1s\""),
        ["arguments have names: write `key = \"stock:{id}\"`"]
    );
    assert_eq!(
        mistakes("kye = \"a\""),
        ["unknown argument `kye`: did you mean `key`?"]
    );
    assert_eq!(
        mistakes("key = KEY"),
        [
            "`key` is one string literal, in whose braces the compiler reads expressions: write `key = \"{KEY}\"` for the value of `KEY`, or the text itself"
        ]
    );
    assert_eq!(
        mistakes("key = format!(\"{a}\")"),
        [
            "`key` is one string literal, with expressions in braces, or an array of them: write `key = \"stock:{id}\"`"
        ]
    );
}

#[test]
fn reads_on_after_a_mistake() {
    let found =
        mistakes(r#"key = "{a}{}", ttl = 10, guard, on_error = |a, b| 1 2, renew = 1, wait = "5""#);
    assert_eq!(found.len(), 6, "{found:#?}");
}

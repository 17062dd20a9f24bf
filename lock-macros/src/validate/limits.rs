//! Refuses durations and numbers that are out of range.

use proc_macro2::Span;
use syn::Error;

use crate::errors::Errors;
use crate::parse::args::Args;
use crate::parse::duration::Millis;
use crate::parse::length::Length;
use crate::parse::values::{Count, too_few};

const ZERO: Millis = Millis(0);
/// A shorter lease cannot be renewed in time.
const MIN_TTL: Millis = Millis(100);
const MAX: Millis = Millis(24 * 3_600_000);
/// With less, a request for several keys would restart without end.
const MIN_HOLD: Millis = Millis(10);
/// A store may keep a lease for each.
const MOST_TAKEN: u32 = 999;

/// Returns the names of the refused arguments. The values of expressions are not known yet: the
/// compiler checks constants, and the runtime the others.
pub(crate) fn check(args: &Args, errors: &mut Errors) -> Vec<&'static str> {
    let lengths = args
        .lengths()
        .filter_map(|(name, length)| length_of(name, length));
    let counts = args.counts().filter_map(|(name, count)| match count {
        Count::Number(0, span) => Some((name, *span, too_few(name))),
        Count::Number(count, span) if name == "take" && *count > MOST_TAKEN => {
            let message = format!("a `take` of {count} is too many: write at most {MOST_TAKEN}");
            Some((name, *span, message))
        }
        _ => None,
    });
    let mut refused = Vec::new();
    for (name, span, message) in lengths.chain(counts) {
        errors.push(Error::new(span, message));
        refused.push(name);
    }
    refused
}

type Refusal = (&'static str, Span, String);

fn length_of(name: &'static str, length: &Length) -> Option<Refusal> {
    let (span, message) = match length {
        Length::Millis(millis, span) => (span, out_of_limits(name, *millis)?),
        Length::Forever(span) => (span, not_forever(name)?.to_owned()),
        Length::Expr(_) => return None,
    };
    Some((name, *span, message))
}

fn out_of_limits(name: &str, millis: Millis) -> Option<String> {
    Some(match name {
        "wait" if millis > MAX => {
            format!("a `wait` of {millis} is too long: write at most `\"24h\"`, or `\"forever\"`")
        }
        _ if millis > MAX => {
            format!("a `{name}` of {millis} is too long: write at most `\"24h\"`")
        }
        "ttl" if millis < MIN_TTL => format!(
            "a `ttl` of {millis} is too short to be renewed in time: write at least `\"{MIN_TTL}\"`"
        ),
        "min_hold" if millis == ZERO => format!(
            "a `min_hold` of {millis} changes nothing: write for example `\"1m\"`, or leave it out"
        ),
        "max_hold" if millis == ZERO => format!(
            "a `max_hold` of {millis} would end before the body begins: write for example `\"10m\"`, or leave it out"
        ),
        "max_hold" if millis < MIN_HOLD => {
            format!("a `max_hold` of {millis} is too short: write at least `\"{MIN_HOLD}\"`")
        }
        _ => return None,
    })
}

fn not_forever(name: &str) -> Option<&'static str> {
    match name {
        "ttl" => Some(
            "a `ttl` cannot be `\"forever\"`, or a crash would lock for ever: write for example `\"10s\"`, which is renewed while the function runs",
        ),
        "min_hold" => Some(
            "a `min_hold` cannot be `\"forever\"`, or nobody would get the lock again: write for example `\"1m\"`",
        ),
        "max_hold" => Some(
            "a `max_hold` cannot be `\"forever\"`: leave it out, and the lock is renewed for as long as the function runs",
        ),
        _ => None,
    }
}

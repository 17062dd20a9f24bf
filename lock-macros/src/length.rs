//! Durations as arguments: a text like `"1m 30s"`, or a constant.

use syn::parse::ParseStream;
use syn::{Error, Expr, ExprPath, Lit, LitStr, Result};

use crate::duration::Millis;
use crate::values::{expression, not_constant, refuse};

const ZERO: Millis = Millis(0);
/// Below this a renewal cannot be in time.
const MIN_TTL: Millis = Millis(100);
const MAX: Millis = Millis(24 * 3_600_000);

/// A duration, known now or to the compiler.
pub(crate) enum Length {
    Millis(Millis),
    Const(ExprPath),
}

pub(crate) enum Wait {
    For(Length),
    Forever,
}

pub(crate) fn wait(input: ParseStream<'_>) -> Result<Wait> {
    if let Ok(Lit::Str(text)) = input.fork().parse()
        && text.value() == "forever"
    {
        input.parse::<LitStr>()?;
        return Ok(Wait::Forever);
    }
    length("wait", input).map(Wait::For)
}

/// The value of the argument `name`.
pub(crate) fn length(name: &str, input: ParseStream<'_>) -> Result<Length> {
    match input.fork().parse() {
        Ok(Lit::Str(_)) => literal(name, &input.parse()?).map(Length::Millis),
        Ok(Lit::Int(number)) => {
            let unit = match number.suffix() {
                unit @ ("ms" | "s" | "m" | "h") => unit,
                _ => "s",
            };
            let digits = number.base10_digits().trim_start_matches('-');
            refuse(
                input,
                &format!(
                    "`{name}` is a text with a number and a unit: write `{name} = \"{digits}{unit}\"`"
                ),
            )
        }
        Ok(_) => refuse(
            input,
            &format!("`{name}` is a text with a number and a unit: write `{name} = \"10s\"`"),
        ),
        Err(_) => match expression(input)? {
            Expr::Path(path) => Ok(Length::Const(path)),
            other => Err(Error::new_spanned(other, not_constant(name))),
        },
    }
}

fn literal(name: &str, text: &LitStr) -> Result<Millis> {
    let error = |message: String| Err(Error::new(text.span(), message));
    if text.value() == "forever"
        && let Some(advice) = not_forever(name)
    {
        return error(advice.to_owned());
    }
    let millis = match text.value().parse() {
        Ok(millis) => millis,
        Err(wrong) => return error(format!("in `{name}`, {wrong}")),
    };
    match name {
        "wait" if millis > MAX => error(format!(
            "a `wait` of {millis} is too long: write at most `\"24h\"`, or `\"forever\"`"
        )),
        _ if millis > MAX => error(format!(
            "a `{name}` of {millis} is too long: write at most `\"24h\"`"
        )),
        "ttl" if millis < MIN_TTL => error(format!(
            "a `ttl` of {millis} is too short to be renewed in time: write at least `\"{MIN_TTL}\"`"
        )),
        "min_hold" if millis == ZERO => error(format!(
            "a `min_hold` of {millis} changes nothing: write for example `\"1m\"`, or leave it out"
        )),
        "max_hold" if millis == ZERO => error(format!(
            "a `max_hold` of {millis} would end before the body begins: write for example `\"10m\"`, or leave it out"
        )),
        _ => Ok(millis),
    }
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

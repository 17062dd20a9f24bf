//! The values of the arguments, one function for each form.

use proc_macro2::Ident;
use syn::parse::ParseStream;
use syn::{Error, Expr, ExprPath, Lit, LitStr, Path, Result};

use crate::duration::Millis;
use crate::key::Key;

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

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    Detached,
    Confirmed,
}

pub(crate) fn key(input: ParseStream<'_>) -> Result<Key> {
    match input.fork().parse() {
        Ok(Lit::Str(_)) => Key::new(input.parse()?),
        _ => refuse(
            input,
            "`key` is one string literal, with expressions in braces: write `key = \"stock:{id}\"`",
        ),
    }
}

pub(crate) fn ttl(input: ParseStream<'_>) -> Result<Length> {
    let span = input.span();
    let ttl = length("ttl", input)?;
    match ttl {
        Length::Millis(millis) if millis < MIN_TTL => Err(Error::new(
            span,
            format!(
                "a `ttl` of {millis} is too short to be renewed in time: write at least `\"{MIN_TTL}\"`"
            ),
        )),
        _ => Ok(ttl),
    }
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

fn length(name: &str, input: ParseStream<'_>) -> Result<Length> {
    match input.fork().parse() {
        Ok(Lit::Str(_)) => literal_length(name, &input.parse()?).map(Length::Millis),
        Ok(Lit::Int(number)) => {
            let unit = match number.suffix() {
                unit @ ("ms" | "s" | "m" | "h") => unit,
                _ => "s",
            };
            let digits = number.base10_digits();
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

/// What to say about a duration that is not known yet.
pub(crate) fn not_constant(name: &str) -> String {
    format!(
        "`{name}` must be known when the program is compiled: write `{name} = \"10s\"`, or the name of a constant of type `Duration`"
    )
}

fn literal_length(name: &str, text: &LitStr) -> Result<Millis> {
    let error = |message: String| Error::new(text.span(), message);
    if name == "ttl" && text.value() == "forever" {
        return Err(error(
            "a `ttl` cannot be `\"forever\"`, or a crash would lock for ever: write for example `\"10s\"`, which is renewed while the function runs".to_owned(),
        ));
    }
    let millis: Millis = text
        .value()
        .parse()
        .map_err(|wrong| error(format!("in `{name}`, {wrong}")))?;
    if millis > MAX {
        let forever = match name {
            "wait" => ", or `\"forever\"`",
            _ => "",
        };
        return Err(error(format!(
            "a `{name}` of {millis} is too long: write at most `\"24h\"`{forever}"
        )));
    }
    Ok(millis)
}

pub(crate) fn renew(input: ParseStream<'_>) -> Result<bool> {
    match input.fork().parse() {
        Ok(Lit::Bool(renew)) => {
            input.parse::<Lit>()?;
            Ok(renew.value)
        }
        _ => refuse(
            input,
            "`renew` is `true` or `false`: write `renew = false` for a lease of fixed length",
        ),
    }
}

pub(crate) fn release(input: ParseStream<'_>) -> Result<Release> {
    let release = match input.fork().parse() {
        Ok(Lit::Str(text)) if text.value() == "detached" => Release::Detached,
        Ok(Lit::Str(text)) if text.value() == "confirmed" => Release::Confirmed,
        _ => {
            return refuse(
                input,
                "`release` is `\"detached\"` (return at once) or `\"confirmed\"` (wait for the server's answer)",
            );
        }
    };
    input.parse::<LitStr>()?;
    Ok(release)
}

pub(crate) fn on_error(input: ParseStream<'_>) -> Result<Expr> {
    match expression(input)? {
        handler @ (Expr::Closure(_) | Expr::Path(_)) => Ok(handler),
        other => Err(Error::new_spanned(
            other,
            "`on_error` is a function from `LockError` to what this function returns: write `on_error = |error| …` or its path",
        )),
    }
}

pub(crate) fn guard(input: ParseStream<'_>) -> Result<Ident> {
    if input.peek(syn::Ident) {
        return input.parse();
    }
    refuse(
        input,
        "`guard` is the name that the lock gets in the body: write `guard = lock`",
    )
}

pub(crate) fn krate(input: ParseStream<'_>) -> Result<Path> {
    if input.peek(Lit) {
        return refuse(
            input,
            "`crate` is a path without quotes: write `crate = my_crate::lock_runtime`",
        );
    }
    Path::parse_mod_style(input)
}

/// The next expression, out of the invisible group that `macro_rules!` may have put it in.
fn expression(input: ParseStream<'_>) -> Result<Expr> {
    let mut expr = input.parse()?;
    while let Expr::Group(group) = expr {
        expr = *group.expr;
    }
    Ok(expr)
}

/// An error about the whole value, not only its first token.
fn refuse<T>(input: ParseStream<'_>, message: &str) -> Result<T> {
    let start = input.span();
    Err(match input.parse::<Expr>() {
        Ok(value) => Error::new_spanned(value, message),
        Err(_) => Error::new(start, message),
    })
}

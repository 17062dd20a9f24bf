//! Durations as arguments: a text like `"1m 30s"`, `"forever"`, or an expression.

use proc_macro2::Span;
use syn::parse::ParseStream;
use syn::{Error, Expr, Lit, LitStr, Result, Token};

use crate::parse::duration::Millis;
use crate::parse::values::{expression, refuse};

/// A duration, as far as the expansion knows it.
pub(crate) enum Length {
    Millis(Millis, Span),
    Forever(Span),
    Expr(Expr),
}

/// The value of the argument `name`.
pub(crate) fn length(name: &str, input: ParseStream<'_>) -> Result<Length> {
    match literal_alone(input) {
        Some(Lit::Str(_)) => literal(name, &input.parse()?),
        Some(Lit::Int(number)) => {
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
        Some(_) => refuse(
            input,
            &format!("`{name}` is a text with a number and a unit: write `{name} = \"10s\"`"),
        ),
        None => expression(name, input).map(Length::Expr),
    }
}

/// The value, if it is a literal and not an expression that begins with one.
fn literal_alone(input: ParseStream<'_>) -> Option<Lit> {
    let fork = input.fork();
    let literal = fork.parse().ok()?;
    let alone = fork.is_empty() || fork.peek(Token![,]);
    alone.then_some(literal)
}

fn literal(name: &str, text: &LitStr) -> Result<Length> {
    let span = text.span();
    match text.value().as_str() {
        "forever" => Ok(Length::Forever(span)),
        "none" | "never" | "no" | "once" | "try" | "infinite" | "always" if name == "wait" => {
            Err(Error::new(
                span,
                "`wait` is a duration: write `wait = \"0s\"` to try once, or `wait = \"forever\"` to wait for as long as it takes",
            ))
        }
        text => match text.parse() {
            Ok(millis) => Ok(Length::Millis(millis, span)),
            Err(wrong) => Err(Error::new(span, format!("in `{name}`, {wrong}"))),
        },
    }
}

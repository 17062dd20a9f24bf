//! Durations as arguments: a text like `"1m 30s"`, the name of a constant, or `"forever"`.

use proc_macro2::Span;
use syn::parse::ParseStream;
use syn::{Error, Expr, ExprPath, Lit, LitStr, Result};

use crate::parse::duration::Millis;
use crate::parse::values::{expression, not_constant, refuse};

/// A duration, as far as it is known at expansion; a constant is known only to the compiler.
pub(crate) enum Length {
    Millis(Millis, Span),
    Const(ExprPath),
    Forever(Span),
}

/// The value of the argument `name`.
pub(crate) fn length(name: &str, input: ParseStream<'_>) -> Result<Length> {
    match input.fork().parse() {
        Ok(Lit::Str(_)) => literal(name, &input.parse()?),
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

fn literal(name: &str, text: &LitStr) -> Result<Length> {
    let span = text.span();
    match text.value().as_str() {
        "forever" => Ok(Length::Forever(span)),
        text => match text.parse() {
            Ok(millis) => Ok(Length::Millis(millis, span)),
            Err(wrong) => Err(Error::new(span, format!("in `{name}`, {wrong}"))),
        },
    }
}

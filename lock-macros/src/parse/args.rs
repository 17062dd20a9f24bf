//! The arguments of the attribute: `key = "stock:{id}", ttl = "10s"`.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::{End, ParseStream, Parser as _};
use syn::{Error, Expr, Lit, Path, Result, Token};

use crate::errors::Errors;
use crate::parse::keys::Keys;
use crate::parse::length::{Length, length};
use crate::parse::spelling::{other_word, similar};
use crate::parse::values::{self, Count, Mode, OnLost, Release};

/// Every argument with an example of its value. A new argument is a line here, a field of
/// [`Args`], and an arm of [`Args::set`].
const ARGUMENTS: &[(&str, &str)] = &[
    ("key", "\"stock:{id}\""),
    ("ticket", "job.ticket"),
    ("ttl", "\"10s\""),
    ("wait", "\"5s\""),
    ("renew", "false"),
    ("min_hold", "\"1m\""),
    ("max_hold", "\"10m\""),
    ("mode", "\"read\""),
    ("permits", "4"),
    ("take", "2"),
    ("max_waiters", "8"),
    ("reentrant", "true"),
    ("release", "\"confirmed\""),
    ("on_lost", "\"notify\""),
    ("on_error", "|error| fallback(error)"),
    ("guard", "lock"),
    ("manager", "self.locks"),
    ("crate", "my_crate::lock_runtime"),
];

/// What was written; `None` where an argument is absent or in error.
#[derive(Default)]
pub(crate) struct Args {
    /// The names of all arguments in the order in which they were written, including those in
    /// error. A misspelt name is listed as what it was meant to be, so that nothing calls it missing.
    pub(crate) names: Vec<Ident>,
    pub(crate) keys: Option<Keys>,
    pub(crate) ticket: Option<Expr>,
    pub(crate) ttl: Option<Length>,
    pub(crate) wait: Option<Length>,
    pub(crate) renew: Option<bool>,
    pub(crate) min_hold: Option<Length>,
    pub(crate) max_hold: Option<Length>,
    pub(crate) mode: Option<Mode>,
    pub(crate) permits: Option<Count>,
    pub(crate) take: Option<Count>,
    pub(crate) max_waiters: Option<Count>,
    pub(crate) reentrant: Option<bool>,
    pub(crate) release: Option<Release>,
    pub(crate) on_lost: Option<OnLost>,
    pub(crate) on_error: Option<Expr>,
    pub(crate) guard: Option<Ident>,
    pub(crate) manager: Option<Expr>,
    pub(crate) krate: Option<Path>,
}

impl Args {
    /// Reads all arguments; goes on after those in error.
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Args {
        let mut args = Args::default();
        let parse_all = |input: ParseStream<'_>| {
            while !input.is_empty() {
                let parsed = args
                    .argument(input, errors)
                    .and_then(|()| end_of_argument(input));
                if errors.ok(parsed).is_none() {
                    skip_argument(input)?;
                }
                input.parse::<Option<Token![,]>>()?;
            }
            Ok(())
        };
        // After a mistake within brackets the rest of them is left unread: that is no second mistake.
        if let (Err(error), true) = (parse_all.parse2(tokens), errors.is_empty()) {
            errors.push(error);
        }
        args
    }

    /// The settings that are expressions, with their names.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = (&'static str, &Expr)> {
        let counts = self.counts().filter_map(|(name, count)| match count {
            Count::Expr(expr) => Some((name, expr)),
            Count::Number(..) => None,
        });
        self.lengths()
            .filter_map(|(name, length)| match length {
                Length::Expr(expr) => Some((name, expr)),
                Length::Millis(..) | Length::Forever(_) => None,
            })
            .chain(counts)
    }

    /// The durations, with the names of their arguments.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = (&'static str, &Length)> {
        let lengths = [
            ("ttl", &self.ttl),
            ("wait", &self.wait),
            ("min_hold", &self.min_hold),
            ("max_hold", &self.max_hold),
        ];
        lengths
            .into_iter()
            .filter_map(|(name, length)| Some((name, length.as_ref()?)))
    }

    /// The numbers, with the names of their arguments.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&'static str, &Count)> {
        let counts = [
            ("permits", &self.permits),
            ("take", &self.take),
            ("max_waiters", &self.max_waiters),
        ];
        counts
            .into_iter()
            .filter_map(|(name, count)| Some((name, count.as_ref()?)))
    }

    fn argument(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> Result<()> {
        let name = name(input, &mut self.names)?;
        let example = example(&name, &mut self.names)?;
        let error = |span, message| Err(Error::new(span, message));
        if input.is_empty() || input.peek(Token![,]) {
            let message = format!("`{name}` needs a value: write `{name} = {example}`");
            return error(name.span(), message);
        }
        if !input.peek(Token![=]) || input.peek(Token![==]) {
            let message = format!("expected `=` after `{name}`, as in `{name} = {example}`");
            return error(input.span(), message);
        }
        let equals = input.parse::<Token![=]>()?;
        if input.is_empty() || input.peek(Token![,]) {
            let message = format!("`{name}` has no value: write `{name} = {example}`");
            return error(equals.span, message);
        }
        if self.names.iter().filter(|seen| **seen == name).count() > 1 {
            let message = format!("`{name}` is given more than once: keep one of them");
            return error(name.span(), message);
        }
        self.set(&name, input, errors)
    }

    fn set(&mut self, name: &Ident, input: ParseStream<'_>, errors: &mut Errors) -> Result<()> {
        match name.to_string().as_str() {
            "key" => self.keys = Some(Keys::parse(input, errors)?),
            "ticket" => self.ticket = Some(values::ticket(input)?),
            "ttl" => self.ttl = Some(length("ttl", input)?),
            "wait" => self.wait = Some(length("wait", input)?),
            "renew" => self.renew = Some(values::renew(input)?),
            "min_hold" => self.min_hold = Some(length("min_hold", input)?),
            "max_hold" => self.max_hold = Some(length("max_hold", input)?),
            "mode" => self.mode = Some(values::mode(input)?),
            "permits" => self.permits = Some(values::count("permits", input)?),
            "take" => self.take = Some(values::count("take", input)?),
            "max_waiters" => self.max_waiters = Some(values::count("max_waiters", input)?),
            "reentrant" => self.reentrant = Some(values::reentrant(input)?),
            "release" => self.release = Some(values::release(input)?),
            "on_lost" => self.on_lost = Some(values::on_lost(input)?),
            "on_error" => self.on_error = Some(values::on_error(input)?),
            "guard" => self.guard = Some(values::guard(input)?),
            "manager" => self.manager = Some(values::expression("manager", input)?),
            "crate" => self.krate = Some(values::krate(input)?),
            other => unreachable!("`{other}` is not one of ARGUMENTS"),
        }
        Ok(())
    }
}

fn name(input: ParseStream<'_>, names: &mut Vec<Ident>) -> Result<Ident> {
    if input.peek(Ident::peek_any) {
        return input.call(Ident::parse_any);
    }
    let advice = match input.fork().parse() {
        Ok(Lit::Str(text)) if input.peek2(Token![=]) => {
            let name = text.value();
            return Err(input.error(format!(
                "names of arguments have no quotes: write `{name} = …`"
            )));
        }
        Ok(Lit::Str(text)) => {
            names.push(Ident::new("key", text.span()));
            format!("arguments have names: write `key = {}`", text.token())
        }
        _ => "expected an argument with its name, as in `key = \"stock:{id}\"`".to_owned(),
    };
    Err(input.error(advice))
}

/// Adds the name to `names` and returns an example of its value.
fn example(name: &Ident, names: &mut Vec<Ident>) -> Result<&'static str> {
    let written = name.to_string();
    if let Some((_, example)) = ARGUMENTS.iter().find(|(known, _)| written == *known) {
        names.push(name.clone());
        return Ok(example);
    }
    let known = ARGUMENTS.iter().map(|(known, _)| *known);
    let advice = if let Some((meant, advice)) = other_word(&written) {
        names.push(Ident::new(meant, name.span()));
        advice.to_owned()
    } else if let Some(meant) = similar(&written, known.clone()) {
        names.push(Ident::new(meant, name.span()));
        format!("did you mean `{meant}`?")
    } else {
        let known: Vec<_> = known.map(|name| format!("`{name}`")).collect();
        format!("the arguments are {}", known.join(", "))
    };
    let message = format!("unknown argument `{name}`: {advice}");
    Err(Error::new(name.span(), message))
}

fn end_of_argument(input: ParseStream<'_>) -> Result<()> {
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(());
    }
    Err(input.error("expected `,` before the next argument"))
}

/// Skips to the next comma that an argument follows; a comma inside a value is followed by
/// something else.
fn skip_argument(input: ParseStream<'_>) -> Result<()> {
    let value_follows = || input.peek3(Token![=]) || input.peek3(Token![,]) || input.peek3(End);
    let argument_follows = || input.peek2(Ident::peek_any) && value_follows() || input.peek2(End);
    while !(input.is_empty() || input.peek(Token![,]) && argument_follows()) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

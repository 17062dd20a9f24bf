//! The arguments of the attribute: `key = "stock:{id}", ttl = "10s"`.

mod value;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::{End, ParseStream, Parser as _};
use syn::{Error, Expr, Lit, Path, Result, Token};

use crate::errors::Errors;
use crate::key::Key;
pub(crate) use value::{Length, Release, Wait};

/// Every argument with an example of its value. A new argument is a line here, a field of
/// [`Args`], and an arm of [`Args::set`].
const ARGUMENTS: &[(&str, &str)] = &[
    ("key", "\"stock:{id}\""),
    ("ttl", "\"10s\""),
    ("wait", "\"5s\""),
    ("renew", "false"),
    ("release", "\"confirmed\""),
    ("on_error", "|error| fallback(error)"),
    ("guard", "lock"),
    ("manager", "self.locks"),
    ("crate", "my_crate::lock_runtime"),
];

/// What was written; `None` where an argument is absent or in error.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) key: Option<Key>,
    pub(crate) ttl: Option<Length>,
    pub(crate) wait: Option<Wait>,
    pub(crate) renew: Option<bool>,
    pub(crate) release: Option<Release>,
    pub(crate) on_error: Option<Expr>,
    pub(crate) guard: Option<Ident>,
    pub(crate) manager: Option<Expr>,
    pub(crate) krate: Option<Path>,
}

impl Args {
    /// Reads all arguments, past the ones in error.
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Args {
        let mut args = Args::default();
        let mut seen = Vec::new();
        let parse_all = |input: ParseStream<'_>| {
            while !input.is_empty() {
                let parsed = args
                    .argument(input, &mut seen)
                    .and_then(|()| end_of_argument(input));
                if errors.ok(parsed).is_none() {
                    skip_argument(input)?;
                }
                input.parse::<Option<Token![,]>>()?;
            }
            Ok(())
        };
        let parsed = parse_all.parse2(tokens);
        errors.ok(parsed);
        if !seen.iter().any(|name| name == "key") {
            errors.push(Error::new(
                Span::call_site(),
                "the lock has no name: add `key = \"…\"`, with arguments of the function in braces, as in `key = \"stock:{id}\"`",
            ));
        }
        args
    }

    fn argument(&mut self, input: ParseStream<'_>, seen: &mut Vec<Ident>) -> Result<()> {
        let name = name(input)?;
        let repeated = seen.contains(&name);
        seen.push(name.clone());
        let example = example(&name)?;
        if !input.peek(Token![=]) || input.peek(Token![==]) {
            return Err(Error::new(
                name.span(),
                format!("`{name}` needs a value: write `{name} = {example}`"),
            ));
        }
        let equals = input.parse::<Token![=]>()?;
        if input.is_empty() || input.peek(Token![,]) {
            return Err(Error::new(
                equals.span,
                format!("the value of `{name}` is missing: write `{name} = {example}`"),
            ));
        }
        if repeated {
            return Err(Error::new(
                name.span(),
                format!("`{name}` is given more than once: keep one of them"),
            ));
        }
        self.set(&name, input)
    }

    fn set(&mut self, name: &Ident, input: ParseStream<'_>) -> Result<()> {
        match name.to_string().as_str() {
            "key" => self.key = Some(value::key(input)?),
            "ttl" => self.ttl = Some(value::ttl(input)?),
            "wait" => self.wait = Some(value::wait(input)?),
            "renew" => self.renew = Some(value::renew(input)?),
            "release" => self.release = Some(value::release(input)?),
            "on_error" => self.on_error = Some(value::on_error(input)?),
            "guard" => self.guard = Some(value::guard(input)?),
            "manager" => self.manager = Some(input.parse()?),
            "crate" => self.krate = Some(value::krate(input)?),
            other => unreachable!("`{other}` is not one of ARGUMENTS"),
        }
        Ok(())
    }
}

fn name(input: ParseStream<'_>) -> Result<Ident> {
    if input.peek(Ident::peek_any) {
        return input.call(Ident::parse_any);
    }
    let advice = match input.fork().parse() {
        Ok(Lit::Str(text)) => {
            let text = text.token();
            format!("arguments have names: write `key = {text}`")
        }
        _ => "expected an argument with its name, as in `key = \"stock:{id}\"`".to_owned(),
    };
    Err(input.error(advice))
}

fn example(name: &Ident) -> Result<&'static str> {
    let written = name.to_string();
    if let Some((_, example)) = ARGUMENTS.iter().find(|(known, _)| written == *known) {
        return Ok(example);
    }
    let names = ARGUMENTS.iter().map(|(known, _)| *known);
    let advice = match similar(&written, names.clone()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!(
            "use {}",
            names
                .map(|n| format!("`{n}`"))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    Err(Error::new(
        name.span(),
        format!("unknown argument `{name}`: {advice}"),
    ))
}

fn end_of_argument(input: ParseStream<'_>) -> Result<()> {
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(());
    }
    Err(input.error("expected `,` before the next argument"))
}

/// Goes to the next comma with an argument after it; commas inside of a value are followed by
/// something else.
fn skip_argument(input: ParseStream<'_>) -> Result<()> {
    let argument_follows = || {
        input.peek2(End)
            || input.peek2(Ident::peek_any)
                && (input.peek3(Token![=]) || input.peek3(Token![,]) || input.peek3(End))
    };
    while !input.is_empty() && !(input.peek(Token![,]) && argument_follows()) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

/// The name that differs from what was written by at most a third of its letters.
fn similar<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|name| (distance(written, name), name))
        .min()
        .filter(|(distance, name)| *distance <= name.len().div_ceil(3))
        .map(|(_, name)| name)
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

//! The value of `key`: the template of one key, or of several that are locked together.

use quote::ToTokens as _;
use syn::parse::ParseStream;
use syn::token::Bracket;
use syn::{Error, Expr, ExprLit, Ident, Lit, LitStr, Path, Result, Token, bracketed};

use crate::errors::Errors;
use crate::parse::template::{Placeholder, Template};
use crate::parse::values::{self, expression, refuse};

pub(crate) enum Keys {
    One(Key),
    Several(Vec<Key>),
}

/// The user's literal, and its content.
pub(crate) struct Key {
    pub(crate) literal: LitStr,
    pub(crate) template: Template,
    /// One for each placeholder; `None` if all of them are plain names, which `format_args!` reads
    /// in the literal itself.
    pub(crate) values: Option<Vec<Value>>,
}

/// The arguments of `key!(…)`.
pub(crate) struct Call {
    pub(crate) key: Key,
    /// The path of the runtime, if it is given.
    pub(crate) krate: Option<Path>,
}

/// The subject of a placeholder.
pub(crate) struct Value {
    pub(crate) source: String,
    pub(crate) expr: Expr,
}

impl Keys {
    /// Reads all templates of an array; continues after those in error.
    pub(crate) fn parse(input: ParseStream<'_>, errors: &mut Errors) -> Result<Keys> {
        if input.peek(Bracket) {
            return several(input, errors).map(Keys::Several);
        }
        match input.fork().parse() {
            Ok(Lit::Str(_)) => Key::new(input.parse()?).map(Keys::One),
            _ => refuse(input, &not_a_literal(input)),
        }
    }

    pub(crate) fn as_slice(&self) -> &[Key] {
        match self {
            Keys::One(key) => std::slice::from_ref(key),
            Keys::Several(keys) => keys,
        }
    }
}

impl Call {
    /// Reads `"…"`, or `"…", crate = path`.
    pub(crate) fn parse(input: ParseStream<'_>) -> Result<Call> {
        let usage = |wrong: Error| {
            Error::new(
                wrong.span(),
                "`key!` is one string literal, with expressions in braces: write `key!(\"stock:{id}\")`",
            )
        };
        let literal = input.parse().map_err(usage)?;
        let mut krate = None;
        if input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            input.parse::<Token![crate]>().map_err(usage)?;
            input.parse::<Token![=]>().map_err(usage)?;
            krate = Some(values::krate(input)?);
            input.parse::<Option<Token![,]>>()?;
        }
        if !input.is_empty() {
            return Err(usage(input.error("")));
        }
        let key = Key::new(literal)?;
        Ok(Call { key, krate })
    }
}

impl Key {
    fn new(literal: LitStr) -> Result<Key> {
        let template: Template = match literal.value().parse() {
            Ok(template) => template,
            Err(wrong) => return Err(Error::new(literal.span(), wrong)),
        };
        let values = match Value::parse_all(&template) {
            Ok(values) => values,
            Err(wrong) => return Err(Error::new(literal.span(), wrong)),
        };
        Ok(Key {
            literal,
            template,
            values,
        })
    }
}

impl Value {
    fn parse_all(template: &Template) -> std::result::Result<Option<Vec<Value>>, String> {
        if template.placeholders().all(|one| one.name().is_some()) {
            return Ok(None);
        }
        let values: std::result::Result<_, _> = template.placeholders().map(Value::parse).collect();
        values.map(Some)
    }

    fn parse(placeholder: &Placeholder) -> std::result::Result<Value, String> {
        let written = placeholder.expr.trim();
        let raw = identifier(written).map(|name| name.to_string());
        let source = raw.unwrap_or_else(|| written.to_owned());
        match syn::parse_str(&source) {
            Ok(expr) => Ok(Value { source, expr }),
            Err(wrong) => Err(format!("`{{{source}}}` is not an expression: {wrong}")),
        }
    }
}

/// The name as an identifier, raw if it is a keyword.
pub(crate) fn identifier(name: &str) -> Option<Ident> {
    let plain = syn::parse_str(name);
    plain.or_else(|_| syn::parse_str(&format!("r#{name}"))).ok()
}

/// A constant might hold a template whose braces nobody would read, so its value alone is no key.
fn not_a_literal(input: ParseStream<'_>) -> String {
    match input.fork().parse() {
        Ok(Expr::Path(path)) => {
            let name = path.to_token_stream().to_string().replace(' ', "");
            format!(
                "`key` is one string literal, in whose braces the compiler reads expressions: write `key = \"{{{name}}}\"` for the value of `{name}`, or the text itself"
            )
        }
        _ => "`key` is one string literal, with expressions in braces, or an array of them: write `key = \"stock:{id}\"`".to_owned(),
    }
}

fn several(input: ParseStream<'_>, errors: &mut Errors) -> Result<Vec<Key>> {
    let elements;
    let brackets = bracketed!(elements in input);
    if elements.is_empty() {
        return Err(Error::new(
            brackets.span.join(),
            "`key` names no lock: write at least one between the brackets, as in `key = [\"acct:{from}\", \"acct:{to}\"]`",
        ));
    }
    let mut keys = Vec::new();
    while !elements.is_empty() {
        keys.extend(errors.ok(element(expression("key", &elements)?)));
        if !elements.is_empty() && !elements.peek(Token![,]) {
            return Err(elements.error("expected `,` before the next key"));
        }
        elements.parse::<Option<Token![,]>>()?;
    }
    Ok(keys)
}

fn element(element: Expr) -> Result<Key> {
    match element {
        Expr::Lit(ExprLit {
            attrs,
            lit: Lit::Str(text),
        }) if attrs.is_empty() => Key::new(text),
        other => Err(Error::new_spanned(
            other,
            "each key is a string literal, with expressions in braces: write for example `\"acct:{from}\"`",
        )),
    }
}

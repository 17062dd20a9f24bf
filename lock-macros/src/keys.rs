//! The value of `key`: the name of one lock, or of several that are taken together.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote_spanned;
use syn::parse::ParseStream;
use syn::token::Bracket;
use syn::{Error, Expr, ExprLit, Lit, Path, Result, Token, bracketed};

use crate::errors::Errors;
use crate::key::{Key, Scope};
use crate::values::{expression, refuse};

pub(crate) enum Keys {
    One(Key),
    Several(Vec<Key>),
}

impl Keys {
    /// Reads all templates of an array, past the ones in error.
    pub(crate) fn parse(input: ParseStream<'_>, errors: &mut Errors) -> Result<Keys> {
        if input.peek(Bracket) {
            return several(input, errors).map(Keys::Several);
        }
        match input.fork().parse() {
            Ok(Lit::Str(_)) => Key::new(input.parse()?).map(Keys::One),
            _ => refuse(
                input,
                "`key` is one string literal, with expressions in braces, or an array of them: write `key = \"stock:{id}\"`",
            ),
        }
    }

    /// The variable that [`expand`](Keys::expand) is for.
    pub(crate) fn variable(&self) -> Ident {
        let name = match self {
            Keys::One(_) => "lock_key",
            Keys::Several(_) => "lock_keys",
        };
        Ident::new(name, Span::mixed_site())
    }

    /// An expression of type `LockKey`, or an array of them.
    pub(crate) fn expand(
        &self,
        krate: &Path,
        scope: Scope<'_>,
        errors: &mut Errors,
    ) -> TokenStream {
        let mut expand = |key: &Key| errors.ok(key.expand(krate, scope)).unwrap_or_default();
        match self {
            Keys::One(key) => expand(key),
            Keys::Several(keys) => {
                let keys = keys.iter().map(expand);
                quote_spanned!(Span::mixed_site()=> [#(#keys),*])
            }
        }
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
    let mut keys: Vec<Key> = Vec::new();
    while !elements.is_empty() {
        let key = template(expression(&elements)?);
        keys.extend(errors.ok(key.and_then(|key| distinct(key, &keys))));
        if !elements.is_empty() && !elements.peek(Token![,]) {
            return Err(elements.error("expected `,` before the next key"));
        }
        elements.parse::<Option<Token![,]>>()?;
    }
    Ok(keys)
}

fn template(element: Expr) -> Result<Key> {
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

/// The key, unless it can only be a slip.
fn distinct(key: Key, earlier: &[Key]) -> Result<Key> {
    if earlier.iter().any(|one| one.template == key.template) {
        return Err(Error::new(
            key.literal.span(),
            "this key is in the array already: name another lock, or remove it",
        ));
    }
    Ok(key)
}

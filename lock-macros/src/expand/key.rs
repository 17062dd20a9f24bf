//! Turns key templates into the expressions that build the keys.

use proc_macro2::{Group, Ident, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote_spanned};
use syn::{Expr, Path};

use crate::expand::pieces::{borrow, shown_at};
use crate::parse::keys::{Key, Keys, Value, identifier};
use crate::parse::template::{Part, Placeholder, escape_braces};
use crate::validate::scope::Scope;

/// The variable for the value of [`keys`].
pub(crate) fn variable(keys: &Keys) -> Ident {
    let name = match keys {
        Keys::One(_) => "lock_key",
        Keys::Several(_) => "lock_keys",
    };
    Ident::new(name, Span::mixed_site())
}

/// That variable as an array.
pub(crate) fn all(keys: &Keys) -> TokenStream {
    let variable = variable(keys);
    match keys {
        Keys::One(_) => quote_spanned!(Span::mixed_site()=> [#variable]),
        Keys::Several(_) => variable.into_token_stream(),
    }
}

/// An expression of type `Result<LockKey, LockError>`, or an array of them.
pub(crate) fn keys(keys: &Keys, scope: Scope<'_>, krate: &Path) -> TokenStream {
    match keys {
        Keys::One(one) => written(one, scope, krate),
        Keys::Several(several) => {
            let keys = several.iter().map(|one| key(one, scope, krate));
            quote_spanned!(Span::mixed_site()=> [#(#keys),*])
        }
    }
}

/// The same in a block, which ends what `format_args!` and the values borrow before the expression
/// around it goes on. Held across an await, `format_args!` would make the future `!Send`.
pub(crate) fn key(key: &Key, scope: Scope<'_>, krate: &Path) -> TokenStream {
    let written = written(key, scope, krate);
    quote_spanned!(Span::mixed_site()=> { #written })
}

// Input:
//     "stock:{id}"
//
// Output:
//     key(format_args!("stock:{id}", id = value(&id)))
fn written(key: &Key, scope: Scope<'_>, krate: &Path) -> TokenStream {
    let format = Format { key, scope, krate };
    let format = match &key.values {
        None => format.untouched(),
        Some(values) => format.rewritten(values),
    };
    quote_spanned! {Span::mixed_site()=>
        #krate::__private::key(::core::format_args!(#format))
    }
}

/// The arguments of `format_args!` for one key.
struct Format<'a> {
    key: &'a Key,
    scope: Scope<'a>,
    krate: &'a Path,
}

impl Format<'_> {
    // Input:
    //     "stock:{id}:{misspelt}"
    //
    // Output:
    //     "stock:{id}:{misspelt}", id = value(&id)
    fn untouched(&self) -> TokenStream {
        let Key {
            literal, template, ..
        } = self.key;
        let mut named: Vec<&str> = Vec::new();
        let mut tokens = TokenStream::from(TokenTree::from(literal.token()));
        for name in template.placeholders().filter_map(Placeholder::name) {
            if named.contains(&name) || !self.scope.binds(name) {
                continue;
            }
            named.push(name);
            // Not every alphabetic character may stand in an identifier: rustc reports it at the literal.
            let Some(value) = identifier(name) else {
                continue;
            };
            let value = self.resolve(&value);
            let span = shown_at(literal);
            let mut uses = template
                .placeholders()
                .filter(|one| one.name() == Some(name));
            let wrap = self.wrapper(uses.all(Placeholder::is_displayed), span);
            let name = Ident::new(name, literal.span());
            tokens.extend(quote_spanned! {span=> , #name = #wrap(&#value)});
        }
        tokens
    }

    // Input:
    //     "stock:{item.id}:{size:04}"
    //
    // Output:
    //     "stock:{0}:{1:04}", value(&item.id), value(&size)
    fn rewritten(&self, values: &[Value]) -> TokenStream {
        let mut format = Literal::string(&self.numbered());
        format.set_span(self.span());
        let span = shown_at(&self.key.literal);
        let placeholders = self.key.template.placeholders();
        let values = values.iter().zip(placeholders).map(|(value, placeholder)| {
            let value = self.borrowed(&value.expr);
            let wrap = self.wrapper(placeholder.is_displayed(), span);
            quote_spanned! {span=> , #wrap(#value)}
        });
        quote_spanned! {Span::mixed_site()=> #format #(#values)*}
    }

    /// The template with positions in place of the expressions: `"stock:{0}:{1:04}"`.
    fn numbered(&self) -> String {
        let mut format = String::new();
        let mut count = 0_usize;
        for part in &self.key.template.parts {
            match part {
                Part::Text(text) => format.push_str(&escape_braces(text)),
                Part::Value(Placeholder { spec, .. }) => {
                    let placeholder = Placeholder {
                        expr: count.to_string(),
                        spec: spec.clone(),
                    };
                    format.push_str(&placeholder.to_string());
                    count += 1;
                }
            }
        }
        format
    }

    /// `&` and the expression of a placeholder, spanned at the literal.
    fn borrowed(&self, expr: &Expr) -> TokenStream {
        let borrowed = borrow(expr.clone(), self.span());
        self.respan(borrowed.into_token_stream())
    }

    fn respan(&self, tokens: TokenStream) -> TokenStream {
        tokens
            .into_iter()
            .map(|tree| match tree {
                TokenTree::Ident(ident) => self.resolve(&ident).into(),
                TokenTree::Group(group) => {
                    let inner = self.respan(group.stream());
                    let mut group = Group::new(group.delimiter(), inner);
                    group.set_span(self.span());
                    group.into()
                }
                mut other => {
                    other.set_span(self.span());
                    other
                }
            })
            .collect()
    }

    /// The identifier with the location of the literal and the hygiene of the argument that it
    /// names: in a function from `macro_rules!` the two may differ. Of several arguments with the
    /// same name, the one with the literal's hygiene is meant. Outside a function, too, a name is the literal's.
    fn resolve(&self, ident: &Ident) -> Ident {
        let mut ident = ident.clone();
        ident.set_span(match self.scope.bindings(&ident).as_slice() {
            [] if matches!(self.scope, Scope::Function { .. }) => self.span(),
            [binding] => self.span().resolved_at(binding.span()),
            _ => self.key.literal.span(),
        });
        ident
    }

    /// Located at the literal, but marked as generated: a lint must not suggest edits to code that
    /// the user never wrote.
    fn span(&self) -> Span {
        self.key.literal.span().resolved_at(Span::call_site())
    }

    /// The function for a value: one that has to be displayed gets an error of its own where it cannot.
    fn wrapper(&self, displayed: bool, span: Span) -> TokenStream {
        let krate = self.krate;
        let name = Ident::new(if displayed { "value" } else { "formatted" }, span);
        quote_spanned!(span=> #krate::__private::#name)
    }
}

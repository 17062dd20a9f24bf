//! Turns a key template into the expression that builds the key.

use proc_macro2::{Group, Ident, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote_spanned};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Error, Expr, LitStr, Path, Result, Token};

use crate::pieces::{borrow, default_crate, shown_at};
use crate::template::{Part, Placeholder, Template, escape_braces};

/// The user's literal, and what it says.
pub(crate) struct Key {
    pub(crate) literal: LitStr,
    pub(crate) template: Template,
}

/// The values that a template can name.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// The arguments of this function, as they are bound.
    Function {
        name: &'a Ident,
        bindings: &'a [Ident],
    },
    /// Whatever is in scope where the template stands.
    Anything,
}

/// The expansion of `key!("…")`.
pub(crate) fn expand(tokens: TokenStream) -> TokenStream {
    let parser = |input: ParseStream<'_>| {
        let literal = input.parse()?;
        input.parse::<Option<Token![,]>>()?;
        Ok(literal)
    };
    let literal: Result<LitStr> = parser.parse2(tokens);
    literal
        .map_err(|wrong| {
            Error::new(
                wrong.span(),
                "`key!` is one string literal, with expressions in braces: write `key!(\"stock:{id}\")`",
            )
        })
        .and_then(Key::new)
        .and_then(|key| key.expand(&default_crate(), Scope::Anything))
        .unwrap_or_else(Error::into_compile_error)
}

impl Key {
    pub(crate) fn new(literal: LitStr) -> Result<Key> {
        match literal.value().parse() {
            Ok(template) => Ok(Key { literal, template }),
            Err(wrong) => Err(Error::new(literal.span(), wrong)),
        }
    }

    /// An expression of type `LockKey`. It is a block: what `format_args!` borrows ends in it,
    /// before any await of the statement around it, where it would make the future `!Send`.
    pub(crate) fn expand(&self, krate: &Path, scope: Scope<'_>) -> Result<TokenStream> {
        let plain = self.template.placeholders().all(|p| p.name().is_some());
        let format = if plain {
            self.untouched(scope)
        } else {
            self.rewritten(scope)?
        };
        Ok(quote_spanned! {Span::mixed_site()=>
            {
                let key_writer = &#krate::__private::KeyWriter::new();
                key_writer.write(::core::format_args!(#format))
            }
        })
    }

    // Input:
    //     "stock:{id}:{misspelt}"
    //
    // Output:
    //     "stock:{id}:{misspelt}", id = key_writer.value(&id)
    fn untouched(&self, scope: Scope<'_>) -> TokenStream {
        let mut named: Vec<&str> = Vec::new();
        let mut tokens = TokenStream::from(TokenTree::from(self.literal.token()));
        for name in self.template.placeholders().filter_map(Placeholder::name) {
            if named.contains(&name) || !scope.binds(name) {
                continue;
            }
            named.push(name);
            // Some letters are not letters of identifiers: rustc says so at the literal.
            let Some(value) = identifier(name) else {
                continue;
            };
            let value = self.resolve(&value, scope);
            let name = Ident::new(name, self.literal.span());
            let span = shown_at(&self.literal);
            tokens.extend(quote_spanned! {span=> , #name = key_writer.value(&#value)});
        }
        tokens
    }

    // Input:
    //     "stock:{item.id}:{size:04}"
    //
    // Output:
    //     "stock:{0}:{1:04}", key_writer.value(&item.id), key_writer.value(&size)
    fn rewritten(&self, scope: Scope<'_>) -> Result<TokenStream> {
        let mut format = String::new();
        let mut values = TokenStream::new();
        let mut count = 0_usize;
        for part in &self.template.parts {
            match part {
                Part::Text(text) => format.push_str(&escape_braces(text)),
                Part::Value(Placeholder { expr, spec }) => {
                    let placeholder = Placeholder {
                        expr: count.to_string(),
                        spec: spec.clone(),
                    };
                    format.push_str(&placeholder.to_string());
                    let value = self.borrowed(expr, scope)?;
                    let span = shown_at(&self.literal);
                    values.extend(quote_spanned! {span=> , key_writer.value(#value)});
                    count += 1;
                }
            }
        }
        let mut format = Literal::string(&format);
        format.set_span(self.span());
        Ok(quote_spanned! {Span::mixed_site()=> #format #values})
    }

    /// `&` and the expression of a placeholder, spanned at the literal.
    fn borrowed(&self, source: &str, scope: Scope<'_>) -> Result<TokenStream> {
        let error = |message: String| Error::new(self.literal.span(), message);
        let raw = identifier(source.trim()).map(|name| name.to_string());
        let source = raw.as_deref().unwrap_or(source.trim());
        let expr: Expr = syn::parse_str(source)
            .map_err(|wrong| error(format!("`{{{source}}}` is not an expression: {wrong}")))?;
        if let Expr::Lit(_) = expr {
            return Err(error(format!(
                "`{{{source}}}` names nothing: write `{source}` as text, or an argument between the braces"
            )));
        }
        if let (Some(unknown), Scope::Function { name, bindings }) = (root(&expr), scope)
            && !scope.binds(&unknown.unraw().to_string())
        {
            let arguments = list(bindings);
            return Err(error(format!(
                "`{unknown}` in `{{{source}}}` is not an argument of `{name}`{arguments}"
            )));
        }
        let borrowed = borrow(expr, self.span());
        Ok(self.respan(borrowed.into_token_stream(), scope))
    }

    fn respan(&self, tokens: TokenStream, scope: Scope<'_>) -> TokenStream {
        tokens
            .into_iter()
            .map(|tree| match tree {
                TokenTree::Ident(ident) => self.resolve(&ident, scope).into(),
                TokenTree::Group(group) => {
                    let inner = self.respan(group.stream(), scope);
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

    /// Shown at the literal, but meaning the argument of that name: in a function that
    /// `macro_rules!` wrote the two may come from different places. Of several arguments of one
    /// name it is the one from the place of the literal.
    fn resolve(&self, ident: &Ident, scope: Scope<'_>) -> Ident {
        let mut ident = ident.clone();
        ident.set_span(match scope.bindings(&ident).as_slice() {
            [] => self.span(),
            [binding] => self.span().resolved_at(binding.span()),
            _ => self.literal.span(),
        });
        ident
    }

    /// Shown at the literal, but known as generated: lints would advise to edit what is not there.
    fn span(&self) -> Span {
        self.literal.span().resolved_at(Span::call_site())
    }
}

impl Scope<'_> {
    fn bindings(&self, ident: &Ident) -> Vec<&Ident> {
        let bindings = match self {
            Scope::Function { bindings, .. } => bindings,
            Scope::Anything => &[][..],
        };
        let same = |bound: &&Ident| bound.unraw() == ident.unraw();
        bindings.iter().filter(same).collect()
    }

    /// Whether the name is surely meant: an argument, or by its letters a constant. Any other
    /// is left to rustc, which underlines it inside the literal. Should it be a constant after
    /// all, it is written like the text around it, and no other value can imitate that either.
    fn binds(&self, name: &str) -> bool {
        match self {
            Scope::Function { bindings, .. } => {
                let bound = bindings.iter().any(|bound| bound.unraw() == name);
                bound || !name.chars().any(char::is_lowercase)
            }
            Scope::Anything => true,
        }
    }
}

/// The name as an identifier, raw where it is a keyword.
fn identifier(name: &str) -> Option<Ident> {
    let plain = syn::parse_str(name);
    plain.or_else(|_| syn::parse_str(&format!("r#{name}"))).ok()
}

/// The variable that a chain of fields and methods starts from.
fn root(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Field(field) => root(&field.base),
        Expr::MethodCall(call) => root(&call.receiver),
        Expr::Index(index) => root(&index.expr),
        Expr::Reference(reference) => root(&reference.expr),
        Expr::Unary(unary) => root(&unary.expr),
        Expr::Paren(paren) => root(&paren.expr),
        Expr::Path(path) => path.path.get_ident(),
        _ => None,
    }
}

fn list(bindings: &[Ident]) -> String {
    let names: Vec<_> = bindings.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => ", which has none".to_owned(),
        names => format!(": it has {}", names.join(", ")),
    }
}

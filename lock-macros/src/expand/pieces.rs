//! Small pieces of generated code: the path of the runtime, borrowed expressions, spans.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ExprReference, Path, Token};

/// The path of the runtime: the one that `crate = …` gives, or the usual one.
pub(crate) fn path_of(given: Option<&Path>) -> Path {
    given.map_or_else(|| syn::parse_quote!(::lock_runtime), Path::clone)
}

/// A span for generated code whose errors point to these tokens of the user's.
pub(crate) fn shown_at(tokens: &impl Spanned) -> Span {
    Span::mixed_site().located_at(tokens.span())
}

/// The path of the runtime, located at this span: errors underline its first token.
pub(crate) fn crate_at(krate: &Path, span: Span) -> TokenStream {
    let tokens = krate.to_token_stream().into_iter();
    tokens
        .map(|mut tree| {
            tree.set_span(tree.span().located_at(span));
            tree
        })
        .collect()
}

/// `&expr`, as an argument of a function that expects a reference.
pub(crate) fn given(expr: &Expr) -> TokenStream {
    let borrowed = borrow(expr.clone(), shown_at(expr)).into_token_stream();
    let has_arms = matches!(
        expr,
        Expr::Block(_) | Expr::If(_) | Expr::Match(_) | Expr::Paren(_) | Expr::Unsafe(_)
    );
    if !has_arms {
        return borrowed;
    }
    // Each arm may be a reference: what the function expects must not reach them.
    quote_spanned!(Span::mixed_site()=> match #borrowed { lock_argument => lock_argument })
}

/// `&expr`, in parentheses where they are needed.
pub(crate) fn borrow(expr: Expr, span: Span) -> ExprReference {
    ExprReference {
        attrs: Vec::new(),
        and_token: Token![&](span),
        mutability: None,
        expr: Box::new(expr),
    }
}

//! The function around the generated statements: its header, its braces, and the boxed future of
//! `#[async_trait]`.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;

use crate::expand::pieces::shown_at;
use crate::parse::boxed::Boxed;
use crate::validate::Lock;

/// The item, with these statements in place of those in its body.
pub(crate) fn with_body(lock: &Lock<'_>, statements: &TokenStream) -> TokenStream {
    let header = &lock.function.header;
    let attributes = &lock.function.inner_attributes;
    let statements = match &lock.function.boxed {
        Some(future) => boxed(future, statements),
        None => statements.clone(),
    };
    let body = braces(lock.body, quote!(#attributes #statements));
    quote!(#header #body)
}

// Input:
//     Box::pin(async move {
//         let item = item;
//         let (a, b) = { let __arg2 = __arg2; __arg2 };
//         BODY
//     })
//
// Output:
//     Box::pin(async move {
//         let item = item;
//         let (a, b) = { let __arg2 = __arg2; __arg2 };
//         STATEMENTS
//     })
fn boxed(future: &Boxed, statements: &TokenStream) -> TokenStream {
    let Boxed {
        before,
        keywords,
        arguments,
        ..
    } = future;
    quote!(#before(#keywords { #arguments #statements }))
}

/// The body in braces of its own. Around a single expression, a lint would call braces with the user's span superfluous.
/// Around statements they keep it: it carries the edition, which decides when temporaries of the last expression are
/// dropped.
pub(crate) fn inner(body: &Group) -> Group {
    let is_semicolon =
        |tree: &TokenTree| matches!(tree, TokenTree::Punct(punct) if punct.as_char() == ';');
    let mut inner = body.clone();
    if !inner.stream().into_iter().any(|tree| is_semicolon(&tree)) {
        inner.set_span(shown_at(&inner));
    }
    inner
}

/// Puts the statements in braces with the span of the user's own: an error about a missing value
/// points there.
pub(crate) fn braces(body: &Group, statements: TokenStream) -> Group {
    let mut group = Group::new(Delimiter::Brace, statements);
    group.set_span(body.span());
    group
}

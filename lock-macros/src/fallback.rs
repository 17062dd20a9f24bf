//! Replaces the expansion after a mistake.

use proc_macro2::TokenStream;
use syn::Error;

use crate::errors::Errors;

// Input:
//     async fn f(id: u32) -> Ret { BODY }
//
// Output:
//     async fn f(id: u32) -> Ret { BODY }
//     ::core::compile_error!("the first mistake");
//     ::core::compile_error!("the second mistake");
//
// The item is untouched: calls of it compile, and an editor keeps working in the body.
pub(crate) fn attribute(mut item: TokenStream, errors: Errors) -> TokenStream {
    item.extend(errors.into_tokens());
    item
}

/// The mistake as an expression, since the macro is used where a key is expected.
pub(crate) fn key(error: &Error) -> TokenStream {
    error.to_compile_error()
}

//! The attribute of `lock-runtime`: use it from there, where it is documented.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod boxed;
mod conflicts;
mod duration;
mod errors;
mod expand;
mod function;
mod key;
mod keys;
mod length;
mod output;
mod pieces;
mod site;
#[cfg(test)]
mod snapshots;
mod template;
mod values;

use proc_macro::TokenStream;

/// Runs the body of an `async fn` under a distributed lock.
///
/// # When arguments are dropped
///
/// What the body uses of the arguments is dropped with the body, before the release. What it does
/// not use, or only copies a field of, is dropped at the end of the function, after the release.
/// Where that matters, as with a transaction, let the body take it: `let _open = transaction;`.
///
/// # Threads
///
/// The future is `Send` where that of the plain function is, with one exception: with
/// `release = "confirmed"` the output waits for the server's answer, and has to be `Send` too.
#[proc_macro_attribute]
pub fn distributed_lock(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(args.into(), item.into()).into()
}

/// The key that `#[distributed_lock(key = "…")]` would build from the variables in scope.
#[proc_macro]
pub fn key(template: TokenStream) -> TokenStream {
    key::expand(template.into()).into()
}

//! The attribute of `lock-runtime`: use it from there, where it is documented.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod boxed;
mod duration;
mod errors;
mod expand;
mod function;
mod key;
mod output;
mod pieces;
mod site;
#[cfg(test)]
mod snapshots;
mod template;
mod values;

use proc_macro::TokenStream;

/// Runs the body of an `async fn` under a distributed lock.
#[proc_macro_attribute]
pub fn distributed_lock(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(args.into(), item.into()).into()
}

/// The key that `#[distributed_lock(key = "…")]` would build from the variables in scope.
#[proc_macro]
pub fn key(template: TokenStream) -> TokenStream {
    key::expand(template.into()).into()
}

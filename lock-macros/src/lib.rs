//! The attribute of `lock-runtime`: use it from there, where it is documented.
//!
//! Each macro goes through the same stages, one module each: `parse` reads the input, `validate`
//! refuses contradictions and invalid values, and `expand` generates code from valid input, so it
//! cannot fail. After a mistake, `fallback` replaces `expand`. A stage uses only the ones before it.
//! `errors` collects all mistakes of one macro call, which are reported at once.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod errors;
mod expand;
mod fallback;
mod parse;
#[cfg(test)]
mod snapshots;
mod validate;

use proc_macro2::TokenStream;

use errors::Errors;

/// Runs the body of an `async fn` under a distributed lock.
///
/// # When arguments are dropped
///
/// Arguments that the body uses are dropped with the body, before the release. Arguments that it
/// does not use are dropped at the end of the function, after the release. So are the other fields
/// of an argument of which the body names single fields only, such as `job.name`. If that matters,
/// as for a transaction, move it into the body: `let _open = transaction;`.
///
/// # What runs after the release
///
/// The lock is released when the function returns. A returned stream or future runs after that, so
/// the compiler warns if the return type names one; `#[allow(deprecated)]` on the function accepts
/// it. A task that the body spawns may run on, too.
///
/// # Threads
///
/// The future is `Send` if that of the plain function is, with one exception: with
/// `release = "confirmed"`, the output waits for the server's answer, and must be `Send` too.
#[proc_macro_attribute]
pub fn distributed_lock(
    args: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    attribute(args.into(), item.into()).into()
}

/// The key that `#[distributed_lock(key = "…")]` would build from the variables in scope.
#[proc_macro]
pub fn key(call: proc_macro::TokenStream) -> proc_macro::TokenStream {
    key_macro(call.into()).into()
}

fn attribute(args: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let written = parse::attribute(args, item.clone(), &mut errors);
    match validate::attribute(&written, errors) {
        Ok(lock) => expand::attribute(&lock),
        Err(errors) => fallback::attribute(item, errors),
    }
}

fn key_macro(call: TokenStream) -> TokenStream {
    match parse::key(call).and_then(validate::key) {
        Ok(call) => expand::key(&call),
        Err(error) => fallback::key(&error),
    }
}

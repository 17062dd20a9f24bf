//! Refuses functions that cannot run under a lock, and arguments that do not fit the function.

use proc_macro2::{Group, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::{Error, Result, Type};

use crate::errors::Errors;
use crate::parse::args::Args;
use crate::parse::function::Function;

/// The body, if the function has one and can wait for a lock.
pub(crate) fn body(function: &Function) -> Result<&Group> {
    let name = &function.sig.ident;
    if let Some(keyword) = &function.sig.constness {
        return Err(Error::new(
            keyword.span,
            format!("a `const fn` cannot wait for a lock: make `{name}` an `async fn`"),
        ));
    }
    let Some(body) = &function.body else {
        return Err(Error::new(
            name.span(),
            format!(
                "`{name}` has no body to run under the lock: put `#[distributed_lock]` on the methods that implement it"
            ),
        ));
    };
    if function.sig.asyncness.is_none() && function.boxed.is_none() {
        return Err(not_async(function, body));
    }
    Ok(body)
}

fn not_async(function: &Function, body: &Group) -> Error {
    let name = &function.sig.ident;
    let message = if mentions(body.stream(), "block_on") {
        format!(
            "only an `async fn` can wait for a lock, and `{name}` is sync: write `async fn {name}`, or if an attribute above, such as `#[tokio::main]`, has made it sync, put `#[distributed_lock]` above that attribute"
        )
    } else {
        format!("only an `async fn` can wait for a lock: write `async fn {name}`")
    };
    Error::new(function.sig.fn_token.span, message)
}

fn mentions(tokens: TokenStream, name: &str) -> bool {
    tokens.into_iter().any(|tree| match tree {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => mentions(group.stream(), name),
        _ => false,
    })
}

/// Checks the arguments of the attribute against the function.
pub(crate) fn check(function: &Function, args: &Args, errors: &mut Errors) {
    if args.on_error.is_none() {
        errors.ok(output(function));
    }
    errors.ok(guard(function, args));
}

/// Refuses types that cannot carry an error of the lock. The trait `FromLockError` decides about
/// all others: only the compiler can resolve their names.
fn output(function: &Function) -> Result<()> {
    let name = &function.sig.ident;
    let (span, returns) = match &function.output {
        Type::Tuple(unit) if unit.elems.is_empty() => (name.span(), "returns nothing"),
        Type::Never(never) => (never.span(), "never returns"),
        Type::ImplTrait(opaque) => (opaque.impl_token.span, "returns an `impl Trait`"),
        _ => return Ok(()),
    };
    let message = format!(
        "`{name}` {returns}, so it cannot say that the lock failed: return a `Result` whose error implements `From<LockError>`, or add `on_error = |error| …`"
    );
    Err(Error::new(span, message))
}

/// Refuses a guard that takes the name of an argument of the function.
fn guard(function: &Function, args: &Args) -> Result<()> {
    let guard = args.guard.as_ref();
    match guard.filter(|guard| function.bindings.contains(guard)) {
        None => Ok(()),
        Some(guard) => Err(Error::new(
            guard.span(),
            format!("`guard = {guard}` would hide the argument `{guard}`: choose another name"),
        )),
    }
}

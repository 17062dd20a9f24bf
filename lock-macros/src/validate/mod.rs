//! Stage 2: refuses what is well-formed but makes no sense.

mod conflicts;
mod function;
mod keys;
mod limits;
pub(crate) mod scope;
mod spawned;
mod template;

use proc_macro2::{Group, Span};
use syn::{Error, Expr, Result};

use crate::errors::Errors;
use crate::parse::Written;
use crate::parse::args::Args;
use crate::parse::function::Function;
use crate::parse::keys::{Call, Keys};
use scope::Scope;

/// A valid attribute, with everything that the expansion needs.
pub(crate) struct Lock<'a> {
    pub(crate) args: &'a Args,
    pub(crate) source: Source<'a>,
    pub(crate) function: &'a Function,
    /// The statements to run under the lock, in their braces.
    pub(crate) body: &'a Group,
}

/// Where the name of the lock comes from.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Keys(&'a Keys),
    /// The lock is that of the ticket which this expression borrows.
    Ticket(&'a Expr),
}

/// Returns the valid attribute, or all mistakes: those of the first stage and those found here.
pub(crate) fn attribute(
    written: &Written,
    mut errors: Errors,
) -> std::result::Result<Lock<'_>, Errors> {
    let Written { args, function } = written;
    arguments(args, &mut errors);
    let runnable = function.as_ref().and_then(|function| {
        let body = errors.ok(function::body(function))?;
        function::check(function, args, &mut errors);
        if let Some(guard) = &args.guard {
            errors.ok(spawned::check(body, guard));
        }
        Some((function, body))
    });
    let scope = runnable.map_or(Scope::Anything, |(function, _)| Scope::of(function));
    if let Some(keys) = &args.keys {
        keys::check(keys.as_slice(), scope, &mut errors);
    }
    let keys = args.keys.as_ref().map(Source::Keys);
    let source = keys.or_else(|| args.ticket.as_ref().map(Source::Ticket));
    match (source, runnable) {
        (Some(source), Some((function, body))) if errors.is_empty() => Ok(Lock {
            args,
            source,
            function,
            body,
        }),
        _ => Err(errors),
    }
}

/// The arguments of `key!(…)`, unless there is a mistake in the key.
pub(crate) fn key(call: Call) -> Result<Call> {
    keys::check_one(&call.key, Scope::Anything).map(|()| call)
}

/// Checks the arguments by themselves, without the function.
fn arguments(args: &Args, errors: &mut Errors) {
    if !args
        .names
        .iter()
        .any(|name| name == "key" || name == "ticket")
    {
        errors.push(Error::new(
            Span::call_site(),
            "the lock has no name: add `key = \"…\"`, with arguments of the function in braces, as in `key = \"stock:{id}\"`",
        ));
    }
    let refused = limits::check(args, errors);
    conflicts::check(args, &refused, errors);
}

#[cfg(test)]
mod tests;

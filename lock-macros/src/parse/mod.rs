//! Stage 1: parses the input of the user.
//!
//! Reports only errors of form, such as a number in place of a string. The next stage checks
//! well-formed arguments.

pub(crate) mod args;
pub(crate) mod boxed;
pub(crate) mod duration;
pub(crate) mod function;
pub(crate) mod keys;
pub(crate) mod length;
mod spelling;
pub(crate) mod template;
pub(crate) mod values;

use proc_macro2::TokenStream;
use syn::Result;
use syn::parse::Parser as _;

use crate::errors::Errors;
use args::Args;
use function::Function;
use keys::Call;

/// An attribute and its item.
pub(crate) struct Written {
    pub(crate) args: Args,
    /// `None` for an item that is not a function.
    pub(crate) function: Option<Function>,
}

/// Reads `key = "…", …` and the item below the attribute.
pub(crate) fn attribute(args: TokenStream, item: TokenStream, errors: &mut Errors) -> Written {
    Written {
        args: Args::parse(args, errors),
        function: errors.ok(Function::parse(item)),
    }
}

/// Reads the arguments of `key!(…)`.
pub(crate) fn key(tokens: TokenStream) -> Result<Call> {
    Call::parse.parse2(tokens)
}

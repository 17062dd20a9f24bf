//! Collects the mistakes of one attribute, so that all are reported at once.

use proc_macro2::TokenStream;
use syn::Error;

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            none => *none = Some(error),
        }
    }

    /// The value, or `None` and one more mistake.
    pub(crate) fn ok<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// A `compile_error!` for each mistake.
    pub(crate) fn into_tokens(self) -> TokenStream {
        let tokens = self.0.map(Error::into_compile_error);
        tokens.unwrap_or_default()
    }

    #[cfg(test)]
    pub(crate) fn messages(self) -> Vec<String> {
        let errors = self.0.into_iter().flatten();
        errors.map(|error| error.to_string()).collect()
    }
}

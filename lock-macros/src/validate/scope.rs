//! The names that a key template can use.

use proc_macro2::Ident;
use syn::ext::IdentExt as _;

use crate::parse::function::Function;

#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// The arguments of this function, as they are bound.
    Function {
        name: &'a Ident,
        bindings: &'a [Ident],
    },
    /// Everything in scope at the template.
    Anything,
}

impl<'a> Scope<'a> {
    pub(crate) fn of(function: &'a Function) -> Self {
        Scope::Function {
            name: &function.sig.ident,
            bindings: &function.bindings,
        }
    }

    /// The arguments of this name.
    pub(crate) fn bindings(self, ident: &Ident) -> Vec<&'a Ident> {
        let bindings = match self {
            Scope::Function { bindings, .. } => bindings,
            Scope::Anything => &[],
        };
        let same = |bound: &&Ident| bound.unraw() == ident.unraw();
        bindings.iter().filter(same).collect()
    }

    /// Whether the name is certainly a value in scope: an argument, or a constant by its capital
    /// letters. Any other name is left to rustc, which underlines it inside the literal. If it is
    /// a constant in small letters, its value goes into the key unescaped, like the text around
    /// it, and no other value can imitate that text either.
    pub(crate) fn binds(self, name: &str) -> bool {
        match self {
            Scope::Function { bindings, .. } => {
                let bound = bindings.iter().any(|bound| bound.unraw() == name);
                bound || !name.chars().any(char::is_lowercase)
            }
            Scope::Anything => true,
        }
    }
}

//! What the runtime is told about the function at compile time.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::{ExprPath, Path, PathSegment};

use crate::args::Args;
use crate::function::Function;
use crate::pieces::{crate_at, shown_at};
use crate::values::{Length, Wait};

/// An expression of type `&'static Site`: a `const` block and not a `static`, because items are
/// not hygienic.
pub(crate) fn expand(args: &Args, function: &Function, krate: &Path) -> TokenStream {
    let name = function.sig.ident.unraw().to_string();
    let ttl = args.ttl.as_ref().map(|ttl| length("ttl", ttl));
    let wait = args.wait.as_ref().map(|wait| match wait {
        Wait::For(wait) => length("wait", wait),
        Wait::Forever => quote!(.wait_forever()),
    });
    let renew = (args.renew == Some(false)).then(|| quote!(.fixed_lease()));
    quote_spanned! {Span::mixed_site()=>
        const { &#krate::__private::Site::new(::core::module_path!(), #name) #ttl #wait #renew }
    }
}

/// `.ttl_ms(10000)`, or `.ttl(TTL)`.
fn length(setter: &str, length: &Length) -> TokenStream {
    match length {
        Length::Millis(millis) => {
            let setter = format_ident!("{setter}_ms");
            let millis = Literal::u64_unsuffixed(millis.0);
            quote!(.#setter(#millis))
        }
        Length::Const(path) => {
            let setter = format_ident!("{setter}");
            quote!(.#setter(#path))
        }
    }
}

/// Items that put the user's constants to the test: `cargo check` evaluates no `const` block of
/// a function that is not called, but every item.
pub(crate) fn check_constants(args: &Args, function: &Function, krate: &Path) -> TokenStream {
    let wait = match &args.wait {
        Some(Wait::For(wait)) => Some(wait),
        Some(Wait::Forever) | None => None,
    };
    let lengths = [("ttl", args.ttl.as_ref()), ("wait", wait)];
    let checks = lengths.into_iter().filter_map(|(setter, length)| {
        let Some(Length::Const(path)) = length else {
            return None;
        };
        if is_generic(path, function) {
            return None;
        }
        let span = shown_at(path);
        let setter = Ident::new(setter, span);
        let krate = crate_at(krate, span);
        Some(quote_spanned! {span=>
            const _: #krate::__private::Site = #krate::__private::Site::new("", "").#setter(#path);
        })
    });
    checks.collect()
}

/// Whether the path may depend on generics, which an item in the body cannot name. Those of an
/// `impl` are not seen from here; by custom their names are single letters.
fn is_generic(path: &ExprPath, function: &Function) -> bool {
    let mut own = function.sig.generics.type_params();
    let of_type = path.path.segments.iter().rev().skip(1);
    path.qself.is_some()
        || of_type.last().is_some_and(|PathSegment { ident, .. }| {
            ident == "Self"
                || ident.to_string().len() == 1
                || own.any(|param| param.ident == *ident)
        })
}

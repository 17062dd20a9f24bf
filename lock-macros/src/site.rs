//! What the runtime is told about the function at compile time.

use proc_macro2::{Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::{Error, ExprPath, Path, Result};

use crate::args::Args;
use crate::function::Function;
use crate::pieces::{crate_at, shown_at};
use crate::values::{Length, Wait, not_constant};

/// An expression of type `&'static Site`.
pub(crate) fn expand(args: &Args, function: &Function, krate: &Path) -> TokenStream {
    let constant = constants(args).map(|(_, path)| path).next();
    let span = constant
        .and_then(|path| path.path.segments.last())
        .map_or_else(Span::mixed_site, shown_at);
    let krate = crate_at(krate, span);
    let name = function.sig.ident.unraw().to_string();
    let ttl = args.ttl.as_ref().map(|ttl| length("ttl", ttl, span));
    let wait = args.wait.as_ref().map(|wait| match wait {
        Wait::For(wait) => length("wait", wait, span),
        Wait::Forever => quote!(.wait_forever()),
    });
    let renew = (args.renew == Some(false)).then(|| quote!(.fixed_lease()));
    let site = quote_spanned! {span=>
        &#krate::__private::Site::new(::core::module_path!(), #name) #ttl #wait #renew
    };
    // `cargo check` evaluates no `const` block of a function that is not called, but every item:
    // there it puts the user's constants to the test. Where none can fail, a block is shorter.
    if constant.is_none() || constants(args).any(may_be_generic) {
        return quote_spanned!(Span::mixed_site()=> const { #site });
    }
    quote_spanned! {span=>
        {
            const LOCK_SITE: &#krate::__private::Site = #site;
            LOCK_SITE
        }
    }
}

/// `.ttl_ms(10000)`, or `.ttl(TTL)`.
fn length(setter: &str, length: &Length, span: Span) -> TokenStream {
    match length {
        Length::Millis(millis) => {
            let setter = format_ident!("{setter}_ms");
            let millis = Literal::u64_unsuffixed(millis.0);
            quote_spanned!(span=> .#setter(#millis))
        }
        Length::Const(path) => {
            let setter = format_ident!("{setter}");
            quote_spanned!(span=> .#setter(#path))
        }
    }
}

/// The durations that are paths, with the names of their arguments.
fn constants(args: &Args) -> impl Iterator<Item = (&'static str, &ExprPath)> {
    let wait = match &args.wait {
        Some(Wait::For(wait)) => Some(wait),
        Some(Wait::Forever) | None => None,
    };
    [("ttl", args.ttl.as_ref()), ("wait", wait)]
        .into_iter()
        .filter_map(|(name, length)| match length {
            Some(Length::Const(path)) => Some((name, path)),
            Some(Length::Millis(_)) | None => None,
        })
}

/// Refuses arguments of the function as durations: nobody knows them when the program is compiled.
pub(crate) fn check(args: &Args, function: &Function) -> Result<()> {
    let argument = constants(args).find(|(_, path)| {
        let name = path.path.get_ident();
        name.is_some_and(|name| function.bindings.contains(name))
    });
    match argument {
        None => Ok(()),
        Some((name, path)) => Err(Error::new_spanned(path, not_constant(name))),
    }
}

/// Whether the path may start from a type parameter or from `Self`, which no item can name. By
/// custom only types start with a capital letter.
fn may_be_generic((_, path): (&str, &ExprPath)) -> bool {
    let segments = &path.path.segments;
    let of_type = segments.first().is_some_and(|first| {
        segments.len() > 1 && first.ident.to_string().starts_with(char::is_uppercase)
    });
    path.qself.is_some() || of_type
}

//! The constant that tells the runtime what is known about the function at compile time.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::{ExprPath, Path};

use crate::expand::pieces::{crate_at, shown_at};
use crate::parse::args::Args;
use crate::parse::keys::Keys;
use crate::parse::length::Length;
use crate::parse::values::{Mode, Permits};
use crate::validate::Lock;

// Input:
//     #[distributed_lock(key = "stock:{id}", ttl = "10s", wait = WAIT)]
//     async fn f
//
// Output:
//     const LOCK_SITE: &Site = &Site::new(concat!(module_path!(), "::f"))
//         .template("stock:{id}").ttl_ms(10000).wait(WAIT);
//     LOCK_SITE
/// An expression of type `&'static Site`.
pub(crate) fn expand(lock: &Lock<'_>, krate: &Path) -> TokenStream {
    let args = lock.args;
    let constants: Vec<_> = args.constants().collect();
    // With several constants, it is not known which one an error will be about.
    let span = match *constants {
        [(_, path)] => end_of(path),
        _ => Span::mixed_site(),
    };
    let krate = crate_at(krate, span);
    let name = format!("::{}", lock.function.sig.ident.unraw());
    let template = template(lock.keys);
    let settings = settings(args);
    let site = quote_spanned! {span=>
        &#krate::__private::Site::new(::core::concat!(::core::module_path!(), #name))
            .template(#template) #settings
    };
    // `cargo check` evaluates every constant item, but no `const` block of a function that is never
    // called. An item therefore checks the user's constants; where there are none, a block is shorter.
    if constants.is_empty() || constants.iter().any(|(_, path)| may_be_generic(path)) {
        return quote_spanned!(Span::mixed_site()=> const { #site });
    }
    quote_spanned! {span=>
        {
            const LOCK_SITE: &#krate::__private::Site = #site;
            LOCK_SITE
        }
    }
}

/// The keys as they are written: the same text for all values.
fn template(keys: &Keys) -> String {
    let templates = keys.as_slice().iter().map(|key| key.template.to_string());
    templates.collect::<Vec<_>>().join(", ")
}

/// The calls for settings that differ from the defaults of `Site::new`.
fn settings(args: &Args) -> TokenStream {
    let ttl = args.ttl.as_ref().map(|ttl| length("ttl", ttl));
    let wait = args.wait.as_ref().map(|wait| length("wait", wait));
    let renew = (args.renew == Some(false)).then(|| quote!(.fixed_lease()));
    let min_hold = args.min_hold.as_ref().map(|hold| length("min_hold", hold));
    let max_hold = args.max_hold.as_ref().map(|hold| length("max_hold", hold));
    let mode = (args.mode == Some(Mode::Read)).then(|| quote!(.read()));
    let permits = args.permits.as_ref().map(|permits| match permits {
        Permits::Number(number, _) => literal("permits", &Literal::u32_unsuffixed(*number)),
        Permits::Const(path) => constant("permits", path),
    });
    let reentrant = (args.reentrant == Some(true)).then(|| quote!(.reentrant()));
    quote!(#ttl #wait #renew #min_hold #max_hold #mode #permits #reentrant)
}

/// `.ttl_ms(10000)`, `.ttl(TTL)`, or `.wait_forever()`.
fn length(setter: &str, length: &Length) -> TokenStream {
    match length {
        Length::Millis(millis, _) => {
            literal(&format!("{setter}_ms"), &Literal::u64_unsuffixed(millis.0))
        }
        Length::Const(path) => constant(setter, path),
        Length::Forever(_) => {
            let setter = Ident::new(&format!("{setter}_forever"), Span::mixed_site());
            quote!(.#setter())
        }
    }
}

fn literal(setter: &str, number: &Literal) -> TokenStream {
    let setter = Ident::new(setter, Span::mixed_site());
    quote_spanned!(Span::mixed_site()=> .#setter(#number))
}

/// The call, located at the constant: that is where a wrong value is reported.
fn constant(setter: &str, path: &ExprPath) -> TokenStream {
    let span = end_of(path);
    let setter = Ident::new(setter, span);
    quote_spanned!(span=> .#setter(#path))
}

/// The span of the last segment: for a whole path, stable compilers underline only the first.
fn end_of(path: &ExprPath) -> Span {
    let last = path.path.segments.last();
    last.map_or_else(Span::mixed_site, shown_at)
}

/// Whether the path may start with a type parameter or `Self`, which no item can name. By
/// convention, only types start with a capital letter.
fn may_be_generic(path: &ExprPath) -> bool {
    let segments = &path.path.segments;
    let of_type = segments.first().is_some_and(|first| {
        segments.len() > 1 && first.ident.to_string().starts_with(char::is_uppercase)
    });
    path.qself.is_some() || of_type
}

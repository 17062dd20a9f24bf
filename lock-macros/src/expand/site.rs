//! What is known about the function at compile time, as a constant for the runtime; and the settings
//! whose values are not, which are added when it runs.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::{Expr, ExprPath, Path};

use crate::expand::pieces::{crate_at, shown_at};
use crate::parse::args::Args;
use crate::parse::function::Function;
use crate::parse::length::Length;
use crate::parse::values::{Count, Mode};
use crate::validate::{Lock, Source};

// Input:
//     #[distributed_lock(key = "stock:{id}", ttl = "10s", wait = WAIT, max_hold = self.most)]
//     async fn f
//
// Output:
//     &{
//         const LOCK_SITE: &Site = &Site::new()
//             .template("stock:{id}").ttl_ms(10000).wait(WAIT);
//         LOCK_SITE
//     }
//     .with_max_hold(self.most)
/// An expression of type `&Site`, for this function.
pub(crate) fn expand(lock: &Lock<'_>, krate: &Path) -> TokenStream {
    let mut constants = Vec::new();
    let mut later = Vec::new();
    for (name, expr) in lock.args.expressions() {
        match constant_path(expr, lock.function) {
            Some(path) => constants.push(path),
            None => later.push(at_run_time(name, expr)),
        }
    }
    let site = known(lock, &constants, krate);
    if later.is_empty() {
        return site;
    }
    quote_spanned!(Span::mixed_site()=> &#site #(#later)*)
}

/// `.with_ttl(self.ttl)`
fn at_run_time(name: &str, expr: &Expr) -> TokenStream {
    let span = shown_at(expr);
    let setter = Ident::new(&format!("with_{name}"), span);
    quote_spanned!(span=> .#setter(#expr))
}

/// The constant, of type `&'static Site`.
fn known(lock: &Lock<'_>, constants: &[&ExprPath], krate: &Path) -> TokenStream {
    // With several constants, it is not known which one an error will be about.
    let span = match constants {
        [path] => end_of(path),
        _ => Span::mixed_site(),
    };
    let krate = crate_at(krate, span);
    let template = template(lock.source);
    let settings = settings(lock.args, lock.function);
    let site = quote_spanned! {span=>
        &#krate::__private::Site::new() #template #settings
    };
    // `cargo check` evaluates every constant item, but no `const` block of a function that is never
    // called. An item therefore checks the user's constants; where there are none, a block is shorter.
    if constants.is_empty() || constants.iter().any(|path| may_be_generic(path)) {
        return quote_spanned!(Span::mixed_site()=> const { #site });
    }
    quote_spanned! {span=>
        {
            const LOCK_SITE: &#krate::__private::Site = #site;
            LOCK_SITE
        }
    }
}

// Output:
//     {
//         static LOCK_FUNCTION: Function = Function::new(concat!(module_path!(), "::f"), || {});
//         &LOCK_FUNCTION
//     }
//
// The compiler names the closure after the static, the function and the type around it, which the
// attribute does not see: `shop::Shelf::take`.
pub(crate) fn function(lock: &Lock<'_>, krate: &Path) -> TokenStream {
    let name = format!("::{}", lock.function.sig.ident.unraw());
    quote_spanned! {Span::mixed_site()=>
        {
            static LOCK_FUNCTION: #krate::__private::Function =
                #krate::__private::Function::new(
                    ::core::concat!(::core::module_path!(), #name),
                    || {},
                );
            &LOCK_FUNCTION
        }
    }
}

/// `.template("stock:{id}")`: the keys as they are written, the same text for all values.
fn template(source: Source<'_>) -> Option<TokenStream> {
    let Source::Keys(keys) = source else {
        return None;
    };
    let templates = keys.as_slice().iter().map(|key| key.template.to_string());
    let template = templates.collect::<Vec<_>>().join(", ");
    Some(quote!(.template(#template)))
}

/// The path of a constant, which the compiler checks where it stands. By convention, its name has
/// no small letters; and it is no argument of the function.
fn constant_path<'a>(expr: &'a Expr, function: &Function) -> Option<&'a ExprPath> {
    let Expr::Path(path) = expr else { return None };
    let name = &path.path.segments.last()?.ident;
    let in_capitals = !name.unraw().to_string().contains(char::is_lowercase);
    let is_argument = path
        .path
        .get_ident()
        .is_some_and(|name| function.bindings.contains(name));
    (in_capitals && !is_argument).then_some(path)
}

/// The calls for settings that are known and differ from the defaults of `Site::new`.
fn settings(args: &Args, function: &Function) -> TokenStream {
    let length = |name, value: &Option<Length>| {
        let value = value.as_ref()?;
        length(name, value, function)
    };
    let ttl = length("ttl", &args.ttl);
    let wait = length("wait", &args.wait);
    let renew = (args.renew == Some(false)).then(|| quote!(.fixed_lease()));
    let min_hold = length("min_hold", &args.min_hold);
    let max_hold = length("max_hold", &args.max_hold);
    let mode = (args.mode == Some(Mode::Read)).then(|| quote!(.read()));
    let counts = args.counts().filter_map(|(name, count)| match count {
        Count::Number(number, _) => Some(literal(name, &Literal::u32_unsuffixed(*number))),
        Count::Expr(expr) => Some(constant(name, constant_path(expr, function)?)),
    });
    let reentrant = (args.reentrant == Some(true)).then(|| quote!(.reentrant()));
    quote!(#ttl #wait #renew #min_hold #max_hold #mode #(#counts)* #reentrant)
}

/// `.ttl_ms(10000)`, `.ttl(TTL)`, or `.wait_forever()`.
fn length(setter: &str, length: &Length, function: &Function) -> Option<TokenStream> {
    match length {
        Length::Millis(millis, _) => Some(literal(
            &format!("{setter}_ms"),
            &Literal::u64_unsuffixed(millis.0),
        )),
        Length::Forever(_) => {
            let setter = Ident::new(&format!("{setter}_forever"), Span::mixed_site());
            Some(quote!(.#setter()))
        }
        Length::Expr(expr) => Some(constant(setter, constant_path(expr, function)?)),
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

/// Whether the path may name a type parameter or `Self`, which no item can. By convention, only types
/// start with a capital letter.
fn may_be_generic(path: &ExprPath) -> bool {
    let segments = &path.path.segments;
    let of_type = segments.first().is_some_and(|first| {
        segments.len() > 1 && first.ident.to_string().starts_with(char::is_uppercase)
    });
    let has_arguments = segments.iter().any(|it| !it.arguments.is_none());
    path.qself.is_some() || of_type || has_arguments
}

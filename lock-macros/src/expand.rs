//! Puts acquire, hold and release around the body.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Error, ExprPath, Path, Type};

use crate::args::{Args, Length, Release, Wait};
use crate::errors::Errors;
use crate::function::{Function, nameable};
use crate::key::Scope;

/// The expansion of the attribute; after a mistake the item as it was, so that an editor keeps
/// working in the body, and the mistakes.
pub(crate) fn attribute(args: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let args = Args::parse(args, &mut errors);
    let expanded = errors
        .ok(Function::parse(item.clone()))
        .map(|function| Expansion::new(&args, &function).function(&mut errors));
    match errors.into_tokens() {
        Some(errors) => quote!(#item #errors),
        None => expanded.unwrap_or(item),
    }
}

struct Expansion<'a> {
    args: &'a Args,
    function: &'a Function,
    krate: Path,
}

impl<'a> Expansion<'a> {
    fn new(args: &'a Args, function: &'a Function) -> Self {
        let krate = args.krate.clone();
        Expansion {
            args,
            function,
            krate: krate.unwrap_or_else(default_crate),
        }
    }

    // Input:
    //     async fn f(id: u32) -> Ret { BODY }
    //
    // Output:
    //     async fn f(id: u32) -> Ret {
    //         let lock_key = { … };
    //         let lock_request = acquire(const { &Site::new(…) }, lock_key);
    //         let lock_guard = match lock_request.await {
    //             Ok(lock_guard) => lock_guard,
    //             Err(lock_error) => return FromLockError::from_lock_error(lock_error),
    //         };
    //         match LockGuard::hold(&lock_guard, async move { BODY }).await {
    //             Ok(lock_output) => { LockGuard::release(lock_guard); lock_output }
    //             Err(lock_error) => FromLockError::from_lock_error(lock_error),
    //         }
    //     }
    fn function(&self, errors: &mut Errors) -> TokenStream {
        errors.ok(self.check_return_type());
        errors.ok(self.check_guard());
        let krate = &self.krate;
        let checks = self.check_constants();
        let key = errors.ok(self.key());
        let acquire = self.acquire();
        let body = self.body();
        let finish = self.finish();
        let failure = self.failure();
        // Where nothing returns, a `return` would be unreachable.
        let ret = (!self.never_returns()).then(|| quote!(return));
        self.function.with_body(quote_spanned! {Span::mixed_site()=>
            #checks
            let lock_key = #key;
            let lock_request = #acquire;
            let lock_guard = match lock_request.await {
                ::core::result::Result::Ok(lock_guard) => lock_guard,
                ::core::result::Result::Err(lock_error) => #ret #failure,
            };
            match #krate::LockGuard::hold(&lock_guard, #body).await {
                ::core::result::Result::Ok(lock_output) => #finish,
                ::core::result::Result::Err(lock_error) => #failure,
            }
        })
    }
}

/// The steps of [`Expansion::function`].
impl Expansion<'_> {
    /// What surely cannot carry the failure; other types are left to the trait `FromLockError`.
    fn check_return_type(&self) -> syn::Result<()> {
        let Function { sig, output, .. } = self.function;
        let (span, returns) = match output {
            _ if self.args.on_error.is_some() => return Ok(()),
            Type::Tuple(unit) if unit.elems.is_empty() => (sig.ident.span(), "nothing"),
            Type::Never(never) => (never.span(), "never"),
            Type::ImplTrait(opaque) => (opaque.impl_token.span, "some `impl Trait`"),
            _ => return Ok(()),
        };
        let message = format!(
            "`{}` returns {returns}, which cannot tell that the lock failed: return a `Result` whose error implements `From<LockError>`, or add `on_error = |error| …`",
            sig.ident
        );
        Err(Error::new(span, message))
    }

    fn check_guard(&self) -> syn::Result<()> {
        let guard = self.args.guard.as_ref();
        match guard.filter(|guard| self.function.bindings.contains(guard)) {
            None => Ok(()),
            Some(guard) => Err(Error::new(
                guard.span(),
                format!("`guard = {guard}` would hide the argument `{guard}`: choose another name"),
            )),
        }
    }

    /// Constants are looked at by `cargo check` only outside of generic code.
    fn check_constants(&self) -> TokenStream {
        let wait = match &self.args.wait {
            Some(Wait::For(wait)) => Some(wait),
            Some(Wait::Forever) | None => None,
        };
        [("ttl", self.args.ttl.as_ref()), ("wait", wait)]
            .into_iter()
            .filter_map(|(setter, length)| match length {
                Some(Length::Const(path)) if !self.is_generic(path) => {
                    let krate = &self.krate;
                    let span = path.span().resolved_at(Span::mixed_site());
                    let setter = syn::Ident::new(setter, span);
                    Some(quote_spanned! {span=>
                        const _: #krate::__private::Site =
                            #krate::__private::Site::new("", "").#setter(#path);
                    })
                }
                _ => None,
            })
            .collect()
    }

    /// Whether the path may depend on generics, which an item in the body cannot name. Those of
    /// an `impl` are not seen from here; by custom their names are single letters.
    fn is_generic(&self, path: &ExprPath) -> bool {
        let Some(first) = path.path.segments.first() else {
            return true;
        };
        let first = &first.ident;
        let mut own = self.function.sig.generics.type_params();
        path.qself.is_some()
            || first == "Self"
            || first.to_string().len() == 1
            || own.any(|param| param.ident == *first)
    }

    fn never_returns(&self) -> bool {
        matches!(self.function.output, Type::Never(_))
    }

    fn key(&self) -> syn::Result<Option<TokenStream>> {
        let scope = Scope::Function {
            name: &self.function.sig.ident,
            bindings: &self.function.bindings,
        };
        let key = self.args.key.as_ref();
        key.map(|key| key.expand(&self.krate, scope)).transpose()
    }

    /// The future that takes the lock. It is awaited in another statement: what the manager's
    /// expression borrows must not live on across the await.
    fn acquire(&self) -> TokenStream {
        let krate = &self.krate;
        let site = self.site();
        match &self.args.manager {
            None => quote_spanned! {Span::mixed_site()=>
                #krate::__private::acquire(#site, lock_key)
            },
            Some(manager) => quote_spanned! {Span::mixed_site()=>
                #krate::__private::acquire_with(&#manager, #site, lock_key)
            },
        }
    }

    /// What is known of the function now: a `const` block and not a `static`, because items are
    /// not hygienic.
    fn site(&self) -> TokenStream {
        let krate = &self.krate;
        let name = self.function.sig.ident.unraw().to_string();
        let ttl = self.args.ttl.as_ref().map(|ttl| length("ttl", ttl));
        let wait = self.args.wait.as_ref().map(|wait| match wait {
            Wait::For(wait) => length("wait", wait),
            Wait::Forever => quote!(.wait_forever()),
        });
        let renew = (self.args.renew == Some(false)).then(|| quote!(.fixed_lease()));
        quote_spanned! {Span::mixed_site()=>
            const { &#krate::__private::Site::new(::core::module_path!(), #name) #ttl #wait #renew }
        }
    }

    // Input:
    //     { BODY }
    //
    // Output:
    //     async move {
    //         if false { return output::<Ret>(); }
    //         BODY
    //     }
    //
    // The return that never runs tells inference and coercions the type, which the `async` block
    // does not declare.
    fn body(&self) -> TokenStream {
        let krate = &self.krate;
        let statements = self.function.body();
        let hint = match &self.function.output {
            Type::Never(_) => None,
            output => nameable(output).map(|output| {
                quote_spanned! {Span::mixed_site()=>
                    if false {
                        return #krate::__private::output::<#output>();
                    }
                }
            }),
        };
        let block = self.function.braces(quote!(#hint #statements));
        let body = quote_spanned!(Span::mixed_site()=> async move #block);
        match &self.args.guard {
            None => body,
            Some(name) => quote_spanned! {Span::mixed_site()=>
                {
                    let #name: &#krate::LockGuard = &lock_guard;
                    #body
                }
            },
        }
    }

    /// What follows the body: nothing may come between its end and the release.
    fn finish(&self) -> TokenStream {
        let krate = &self.krate;
        match self.args.release.unwrap_or(Release::Detached) {
            _ if self.never_returns() => {
                quote_spanned!(Span::mixed_site()=> lock_output)
            }
            Release::Detached => quote_spanned! {Span::mixed_site()=>
                {
                    #krate::LockGuard::release(lock_guard);
                    lock_output
                }
            },
            Release::Confirmed => quote_spanned! {Span::mixed_site()=>
                {
                    let _ = #krate::LockGuard::release_confirmed(lock_guard).await;
                    lock_output
                }
            },
        }
    }

    /// What to return when the lock failed.
    fn failure(&self) -> TokenStream {
        let krate = &self.krate;
        match &self.args.on_error {
            Some(handler) => quote_spanned! {Span::mixed_site()=>
                #krate::__private::on_error(lock_error, #handler)
            },
            None => {
                let output = nameable(&self.function.output);
                quote_spanned! {Span::mixed_site()=>
                    <#output as #krate::FromLockError>::from_lock_error(lock_error)
                }
            }
        }
    }
}

/// `.ttl_ms(10000)`, or `.ttl(TTL)`.
fn length(setter: &str, length: &Length) -> TokenStream {
    match length {
        Length::Millis(millis) => {
            let setter = quote::format_ident!("{setter}_ms");
            let millis = proc_macro2::Literal::u64_unsuffixed(millis.0);
            quote!(.#setter(#millis))
        }
        Length::Const(path) => {
            let setter = quote::format_ident!("{setter}");
            quote!(.#setter(#path))
        }
    }
}

/// Where `lock_runtime` is unless `crate = …` says otherwise.
pub(crate) fn default_crate() -> Path {
    syn::parse_quote!(::lock_runtime)
}

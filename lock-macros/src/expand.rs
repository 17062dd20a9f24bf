//! Puts acquire, hold and release around the body.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Error, Path, Type};

use crate::args::Args;
use crate::errors::Errors;
use crate::function::Function;
use crate::key::Scope;
use crate::keys::Keys;
use crate::output::{self, nameable};
use crate::pieces::{borrow, crate_at, default_crate, shown_at};
use crate::site;
use crate::values::{OnLost, Release};

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
    //         let lock_error = 'locked: {
    //             let lock_guard = match lock_request.await {
    //                 Ok(lock_guard) => lock_guard,
    //                 Err(lock_error) => break 'locked lock_error,
    //             };
    //             let lock_body = async move { BODY };
    //             match LockGuard::hold(&lock_guard, lock_body).await {
    //                 Ok(lock_output) => {
    //                     LockGuard::release(lock_guard);
    //                     return lock_output;
    //                 }
    //                 Err(lock_error) => lock_error,
    //             }
    //         };
    //         <Ret as FromLockError>::from_lock_error(lock_error)
    //     }
    //
    // What handles the failure stands there once, so that a mistake in it is reported once.
    // Methods are called by path: a trait of the user's may have one of the same name.
    fn function(&self, errors: &mut Errors) -> TokenStream {
        if self.args.on_error.is_none() {
            errors.ok(output::check(self.function));
        }
        errors.ok(self.check_guard());
        site::check(self.args, self.function, errors);
        let keys = self.keys(errors);
        let acquire = self.acquire();
        let body = self.body();
        let run = self.run();
        let failure = self.failure();
        self.function
            .with_body(&quote_spanned! {Span::mixed_site()=>
                #keys
                let lock_request = #acquire;
                let lock_error = 'locked: {
                    let lock_guard = match lock_request.await {
                        ::core::result::Result::Ok(lock_guard) => lock_guard,
                        ::core::result::Result::Err(lock_error) => break 'locked lock_error,
                    };
                    let lock_body = #body;
                    #run
                };
                #failure
            })
    }
}

/// The steps of [`Expansion::function`].
impl Expansion<'_> {
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

    fn never_returns(&self) -> bool {
        matches!(self.function.output, Type::Never(_))
    }

    /// `let lock_key = { … };` or `let lock_keys = [{ … }, { … }];`
    fn keys(&self, errors: &mut Errors) -> Option<TokenStream> {
        let keys = self.args.keys.as_ref()?;
        let scope = Scope::Function {
            name: &self.function.sig.ident,
            bindings: &self.function.bindings,
        };
        let variable = keys.variable();
        let keys = keys.expand(&self.krate, scope, errors);
        Some(quote_spanned!(Span::mixed_site()=> let #variable = #keys;))
    }

    /// The future that takes the lock. It is awaited in another statement: what the manager's
    /// expression borrows must not live on across the await.
    fn acquire(&self) -> TokenStream {
        let krate = &self.krate;
        let site = site::expand(self.args, self.function, krate);
        let keys = self.args.keys.as_ref().map(Keys::variable);
        match &self.args.manager {
            None => quote_spanned! {Span::mixed_site()=>
                #krate::__private::acquire(#site, #keys)
            },
            Some(manager) => {
                let manager = borrow(manager.clone(), shown_at(manager));
                quote_spanned! {Span::mixed_site()=>
                    #krate::__private::acquire_with(#manager, #site, #keys)
                }
            }
        }
    }

    // Input:
    //     { BODY }
    //
    // Output:
    //     async move {
    //         if false { return output::<Ret>(); }
    //         { BODY }
    //     }
    //
    // The return that never runs tells inference and coercions the type, which the `async` block
    // does not declare. The inner braces keep it out of the body's own statements: there a lint
    // says that items come first.
    fn body(&self) -> TokenStream {
        let krate = &self.krate;
        let output = &self.function.output;
        let body = &self.function.body;
        let hint = nameable(output)
            .filter(|_| !self.never_returns())
            .map(|ty| {
                let span = shown_at(output);
                let krate = crate_at(krate, span);
                quote_spanned! {span=>
                    if false {
                        return #krate::__private::output::<#ty>();
                    }
                }
            });
        let block = match hint {
            Some(hint) => {
                // Not the user's braces to a lint that finds them superfluous.
                let mut body = body.clone();
                body.set_span(shown_at(&body));
                self.function.braces(quote!(#hint #body))
            }
            None => body.clone(),
        };
        let body = quote_spanned!(shown_at(&block)=> async move #block);
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

    /// Runs the body, and releases the lock: nothing may come between its end and that.
    fn run(&self) -> TokenStream {
        let krate = &self.krate;
        let release = self.release();
        match self.args.on_lost.unwrap_or(OnLost::Cancel) {
            OnLost::Cancel => {
                let finish = if self.never_returns() {
                    quote_spanned!(Span::mixed_site()=> lock_output,)
                } else {
                    quote_spanned!(Span::mixed_site()=> { #release return lock_output; })
                };
                quote_spanned! {Span::mixed_site()=>
                    match #krate::LockGuard::hold(&lock_guard, lock_body).await {
                        ::core::result::Result::Ok(lock_output) => #finish
                        ::core::result::Result::Err(lock_error) => lock_error,
                    }
                }
            }
            OnLost::Notify => {
                let output = quote_spanned! {Span::mixed_site()=>
                    #krate::LockGuard::hold_unstopped(&lock_guard, lock_body).await
                };
                if self.never_returns() {
                    return output;
                }
                quote_spanned! {Span::mixed_site()=>
                    let lock_output = #output;
                    #release
                    return lock_output;
                }
            }
        }
    }

    fn release(&self) -> TokenStream {
        let krate = &self.krate;
        match self.args.release.unwrap_or(Release::Detached) {
            Release::Detached => quote_spanned! {Span::mixed_site()=>
                #krate::LockGuard::release(lock_guard);
            },
            Release::Confirmed => quote_spanned! {Span::mixed_site()=>
                let _ = #krate::LockGuard::release_confirmed(lock_guard).await;
            },
        }
    }

    /// What to return when the lock failed.
    fn failure(&self) -> TokenStream {
        let krate = &self.krate;
        let output = nameable(&self.function.output);
        let Some(handler) = &self.args.on_error else {
            return quote_spanned! {Span::mixed_site()=>
                <#output as #krate::FromLockError>::from_lock_error(lock_error)
            };
        };
        // No generic can be `!` on stable: there inference has to find it.
        let output = output.filter(|_| !self.never_returns());
        let output = output.map(|output| quote!(::<#output>));
        let span = shown_at(handler);
        let krate = crate_at(krate, span);
        quote_spanned! {span=>
            #krate::__private::on_error #output (lock_error, #handler)
        }
    }
}

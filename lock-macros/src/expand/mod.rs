//! Stage 3: generates the code. Its input is valid, so nothing here can fail.

mod function;
mod key;
mod late;
mod output;
mod pieces;
mod site;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Path, Type};

use crate::parse::keys::Call;
use crate::parse::values::{OnLost, Release};
use crate::validate::scope::Scope;
use crate::validate::{Lock, Source};
use output::nameable;
use pieces::{crate_at, given, path_of, shown_at};

/// The function, with acquire, hold and release around its body.
pub(crate) fn attribute(lock: &Lock<'_>) -> TokenStream {
    let krate = path_of(lock.args.krate.as_ref());
    Expansion { lock, krate }.function()
}

/// The expression that builds the key of `key!(…)`.
pub(crate) fn key(call: &Call) -> TokenStream {
    key::key(&call.key, Scope::Anything, &path_of(call.krate.as_ref()))
}

struct Expansion<'a> {
    lock: &'a Lock<'a>,
    krate: Path,
}

impl Expansion<'_> {
    // Input:
    //     async fn f(id: u32) -> Ret { BODY }
    //
    // Output:
    //     async fn f(id: u32) -> Ret {
    //         let lock_key = key(format_args!("…{0}", value(&id)));
    //         let lock_request = acquire(const { &Site::new() }, { … &LOCK_FUNCTION }, [lock_key]);
    //         let lock_body = async move { BODY };
    //         hold_and_release(lock_request, lock_body, <Ret as FromLockError>::from_lock_error).await
    //     }
    //
    // The arguments move into the body before anything is awaited: the future has them once. It awaits
    // once, since the compiler repeats for each await what is dropped there.
    //
    // Methods are called by path: a trait of the user's may have a method of the same name.
    fn function(&self) -> TokenStream {
        let warning = self.warning();
        let keys = self.keys();
        let acquire = self.acquire();
        let run = match self.lock.args.on_lost.unwrap_or(OnLost::Cancel) {
            OnLost::Cancel => self.hold(),
            OnLost::Notify => self.hold_unstopped(),
        };
        let statements = quote_spanned! {Span::mixed_site()=>
            #warning
            #keys
            let lock_request = #acquire;
            #run
        };
        function::with_body(self.lock, &statements)
    }
}

/// The steps of [`Expansion::function`].
impl Expansion<'_> {
    fn never_returns(&self) -> bool {
        matches!(self.lock.function.output, Type::Never(_))
    }

    /// Makes the compiler warn where the output has work to do when the lock is released.
    fn warning(&self) -> Option<TokenStream> {
        let span = late::work(&self.lock.function.output)?;
        let krate = crate_at(&self.krate, span);
        Some(quote_spanned!(span=> #krate::__private::runs_after_the_release();))
    }

    /// `let lock_key = { … };` or `let lock_keys = [{ … }, { … }];`
    fn keys(&self) -> Option<TokenStream> {
        let Source::Keys(keys) = self.lock.source else {
            return None;
        };
        let variable = key::variable(keys);
        let scope = Scope::of(self.lock.function);
        let keys = key::keys(keys, scope, &self.krate);
        Some(quote_spanned!(Span::mixed_site()=> let #variable = #keys;))
    }

    /// The future that takes the lock. The next statement awaits it: what the manager's expression
    /// borrows must not live across the await.
    fn acquire(&self) -> TokenStream {
        let krate = &self.krate;
        let site = site::expand(self.lock, krate);
        let function = site::function(self.lock, krate);
        let (verb, source) = match self.lock.source {
            Source::Keys(keys) => ("acquire", key::all(keys)),
            Source::Ticket(ticket) => ("adopt", given(ticket)),
        };
        let call = |name: &str| Ident::new(name, Span::mixed_site());
        match &self.lock.args.manager {
            None => {
                let verb = call(verb);
                quote_spanned! {Span::mixed_site()=>
                    #krate::__private::#verb(#site, #function, #source)
                }
            }
            Some(manager) => {
                let verb = call(&format!("{verb}_with"));
                let manager = given(manager);
                quote_spanned! {Span::mixed_site()=>
                    #krate::__private::#verb(#manager, #site, #function, #source)
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
    //         let lock: &LockGuard = &guard();
    //         { BODY }
    //     }
    //
    // An `async` block cannot declare its type; the return that never runs tells it to inference and
    // coercions. The inner braces separate it from the body, where a lint wants items to come first.
    fn body(&self) -> TokenStream {
        let hint = self.hint();
        let guard = self.guard();
        let body = self.lock.body;
        if hint.is_none() && guard.is_none() {
            // With the user's span, a lint would call `async { future.await }` redundant.
            return quote_spanned!(shown_at(body)=> async move #body);
        }
        let inner = function::inner(body);
        let block = function::braces(body, quote!(#hint #guard #inner));
        // With another span, errors about borrows would not name the variables.
        quote_spanned!(body.span()=> async move #block)
    }

    fn hint(&self) -> Option<TokenStream> {
        let output = &self.lock.function.output;
        let ty = nameable(output).filter(|_| !self.never_returns())?;
        let span = shown_at(output);
        let krate = crate_at(&self.krate, span);
        Some(quote_spanned! {span=>
            if false {
                return #krate::__private::output::<#ty>();
            }
        })
    }

    /// `let lock: &LockGuard = &guard();`
    fn guard(&self) -> Option<TokenStream> {
        let name = self.lock.args.guard.as_ref()?;
        let krate = &self.krate;
        Some(quote_spanned! {Span::mixed_site()=>
            let #name: &#krate::LockGuard = &#krate::__private::guard();
        })
    }

    /// Takes the lock, runs the body and releases the lock.
    fn hold(&self) -> TokenStream {
        let krate = &self.krate;
        let body = self.body();
        let run = match (self.release_kind(), &self.lock.args.on_error) {
            (Release::Detached, None) => {
                let failure = self.conversion();
                quote_spanned! {Span::mixed_site()=>
                    #krate::__private::hold_and_release(lock_request, lock_body, #failure).await
                }
            }
            _ => self.hold_then_release(),
        };
        quote_spanned! {Span::mixed_site()=>
            let lock_body = #body;
            #run
        }
    }

    // Output:
    //     match hold(lock_request, lock_body).await {
    //         Ok((lock_guard, lock_output)) => {
    //             let _ = LockGuard::release_confirmed(lock_guard).await;
    //             lock_output
    //         }
    //         Err(lock_error) => on_error(lock_error, HANDLER),
    //     }
    //
    /// The same where the release is awaited, or the handler of errors may use what is not `Send`.
    fn hold_then_release(&self) -> TokenStream {
        let krate = &self.krate;
        let release = self.release();
        let failure = self.failure();
        quote_spanned! {Span::mixed_site()=>
            match #krate::__private::hold(lock_request, lock_body).await {
                ::core::result::Result::Ok((lock_guard, lock_output)) => {
                    #release
                    lock_output
                }
                ::core::result::Result::Err(lock_error) => #failure,
            }
        }
    }

    // Output:
    //     match lock_request.await {
    //         Ok(lock_guard) => {
    //             let lock_body = async move { BODY };
    //             let lock_output = LockGuard::hold_unstopped(&lock_guard, lock_body).await;
    //             LockGuard::release(lock_guard);
    //             lock_output
    //         }
    //         Err(lock_error) => <Ret as FromLockError>::from_lock_error(lock_error),
    //     }
    //
    /// The same for a body that nothing stops. Where the lock was not taken, there is no body yet:
    /// `on_error` may use what the body moves.
    fn hold_unstopped(&self) -> TokenStream {
        let krate = &self.krate;
        let body = self.body();
        let release = self.release();
        let failure = self.failure();
        let output = quote_spanned! {Span::mixed_site()=>
            #krate::LockGuard::hold_unstopped(&lock_guard, lock_body).await
        };
        let finish = if self.never_returns() {
            output
        } else {
            quote_spanned! {Span::mixed_site()=>
                let lock_output = #output;
                #release
                lock_output
            }
        };
        quote_spanned! {Span::mixed_site()=>
            match lock_request.await {
                ::core::result::Result::Ok(lock_guard) => {
                    let lock_body = #body;
                    #finish
                }
                ::core::result::Result::Err(lock_error) => #failure,
            }
        }
    }

    fn release_kind(&self) -> Release {
        self.lock.args.release.unwrap_or(Release::Detached)
    }

    fn release(&self) -> TokenStream {
        let krate = &self.krate;
        match self.release_kind() {
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
        let Some(handler) = &self.lock.args.on_error else {
            let convert = self.conversion();
            return quote_spanned!(Span::mixed_site()=> #convert(lock_error));
        };
        // On stable Rust `!` cannot be a generic argument: it is left to inference.
        let output = nameable(&self.lock.function.output).filter(|_| !self.never_returns());
        let output = output.map(|output| quote!(::<#output>));
        let span = shown_at(handler);
        let krate = crate_at(krate, span);
        quote_spanned! {span=>
            #krate::__private::on_error #output (lock_error, #handler)
        }
    }

    /// The function that makes the output from an error of the lock.
    fn conversion(&self) -> TokenStream {
        let krate = &self.krate;
        let output = nameable(&self.lock.function.output);
        quote_spanned! {Span::mixed_site()=>
            <#output as #krate::FromLockError>::from_lock_error
        }
    }
}

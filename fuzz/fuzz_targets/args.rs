//! Arguments of the attribute: no tokens panic, what is printed is read as the same, and every expansion is Rust.
#![no_main]
#![allow(dead_code, reason = "the attribute uses more of the modules")]

#[path = "../../lock-macros/src/errors.rs"]
mod errors;
#[path = "../../lock-macros/src/expand/mod.rs"]
mod expand;
#[path = "../../lock-macros/src/fallback.rs"]
mod fallback;
#[path = "../../lock-macros/src/parse/mod.rs"]
mod parse;
#[path = "../../lock-macros/src/validate/mod.rs"]
mod validate;

use errors::Errors;
use libfuzzer_sys::fuzz_target;
use parse::args::Args;
use parse::keys::{Key, Keys};
use parse::length::Length;
use parse::values::{Count, Mode, OnLost, Release};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::quote;

fuzz_target!(|text: &str| {
    let Ok(tokens) = text.parse::<TokenStream>() else {
        return;
    };
    if let Some(args) = read(tokens.clone()) {
        let printed = print(&args).to_string();
        let again = read(printed.parse().expect("what is printed is tokens"));
        let again = again.unwrap_or_else(|| panic!("is not read: {printed}"));
        assert_eq!(print(&again).to_string(), printed);
    }
    let function = quote! {
        async fn buy(&self, item: &Item, id: u32) -> Result<u32, Error> {
            Ok(id)
        }
    };
    let expanded = attribute(tokens, function);
    if let Err(wrong) = syn::parse2::<syn::File>(expanded.clone()) {
        panic!("{wrong}: {expanded}");
    }
});

fn read(tokens: TokenStream) -> Option<Args> {
    let mut errors = Errors::default();
    let args = Args::parse(tokens, &mut errors);
    errors.is_empty().then_some(args)
}

/// The stages, as the attribute goes through them.
fn attribute(args: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let written = parse::attribute(args, item.clone(), &mut errors);
    match validate::attribute(&written, errors) {
        Ok(lock) => expand::attribute(&lock),
        Err(errors) => fallback::attribute(item, errors),
    }
}

fn print(args: &Args) -> TokenStream {
    let key = args.keys.as_ref().map(|keys| match keys {
        Keys::One(key) => template(key),
        Keys::Several(keys) => {
            let keys = keys.iter().map(template);
            quote!([#(#keys),*])
        }
    });
    let key = key.map(|key| quote!(key = #key,));
    let ttl = args.ttl.as_ref().map(length);
    let ttl = ttl.map(|ttl| quote!(ttl = #ttl,));
    let wait = args.wait.as_ref().map(length);
    let wait = wait.map(|wait| quote!(wait = #wait,));
    let renew = args.renew.map(|renew| quote!(renew = #renew,));
    let min_hold = args.min_hold.as_ref().map(length);
    let min_hold = min_hold.map(|hold| quote!(min_hold = #hold,));
    let max_hold = args.max_hold.as_ref().map(length);
    let max_hold = max_hold.map(|hold| quote!(max_hold = #hold,));
    let mode = args.mode.map(|mode| match mode {
        Mode::Exclusive => quote!(mode = "exclusive",),
        Mode::Read => quote!(mode = "read",),
        Mode::Write => quote!(mode = "write",),
    });
    let counts = args.counts().map(|(name, count)| {
        let name = Ident::new(name, Span::call_site());
        match count {
            Count::Number(number, _) => {
                let number = Literal::u32_unsuffixed(*number);
                quote!(#name = #number,)
            }
            Count::Expr(expr) => quote!(#name = #expr,),
        }
    });
    let reentrant = args.reentrant;
    let reentrant = reentrant.map(|truth| quote!(reentrant = #truth,));
    let release = args.release.map(|release| match release {
        Release::Detached => quote!(release = "detached",),
        Release::Confirmed => quote!(release = "confirmed",),
    });
    let on_lost = args.on_lost.map(|on_lost| match on_lost {
        OnLost::Cancel => quote!(on_lost = "cancel",),
        OnLost::Notify => quote!(on_lost = "notify",),
    });
    let on_error = args.on_error.as_ref().map(|f| quote!(on_error = #f,));
    let guard = args.guard.as_ref().map(|name| quote!(guard = #name,));
    let manager = args.manager.as_ref().map(|expr| quote!(manager = #expr,));
    let krate = args.krate.as_ref().map(|path| quote!(crate = #path,));
    quote! {
        #key #ttl #wait #renew #min_hold #max_hold #mode #(#counts)* #reentrant #release #on_lost
        #on_error #guard #manager #krate
    }
}

fn template(key: &Key) -> TokenStream {
    let template = key.template.to_string();
    quote!(#template)
}

fn length(length: &Length) -> TokenStream {
    match length {
        Length::Millis(millis, _) => {
            let text = millis.to_string();
            quote!(#text)
        }
        Length::Expr(expr) => quote!(#expr),
        Length::Forever(_) => quote!("forever"),
    }
}

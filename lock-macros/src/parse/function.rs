//! The annotated function: its signature is parsed, its body kept as tokens.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Error, FnArg, Pat, PatSlice, PatTuple, PatTupleStruct, Result, ReturnType,
    Signature, Type, Visibility,
};

use crate::parse::boxed::Boxed;

/// A function as the user wrote it, before it is checked for a lock.
pub(crate) struct Function {
    /// Attributes, visibility and signature, unchanged.
    pub(crate) header: TokenStream,
    pub(crate) sig: Signature,
    /// The return type; `()` if there is none.
    pub(crate) output: Type,
    /// Every name that the key can use: receiver, arguments, const generics.
    pub(crate) bindings: Vec<Ident>,
    pub(crate) inner_attributes: TokenStream,
    /// The output of `#[async_trait]` for an `async fn`.
    pub(crate) boxed: Option<Boxed>,
    /// The statements of the user, in their braces.
    pub(crate) body: Option<Group>,
}

impl Function {
    pub(crate) fn parse(item: TokenStream) -> Result<Function> {
        let mut header: Vec<TokenTree> = flatten(item);
        let block = header.pop().and_then(braces);
        let header = TokenStream::from_iter(header);
        let sig = signature(header.clone())?;
        let (inner_attributes, block) = block.as_ref().map(inner_attributes).unzip();
        let boxed = block
            .as_ref()
            .filter(|_| sig.asyncness.is_none())
            .and_then(|block| Boxed::recognize(&sig, block));
        let output = match (&boxed, &sig.output) {
            (Some(boxed), _) => boxed.output.clone(),
            (None, ReturnType::Type(_, output)) => Type::clone(output),
            (None, ReturnType::Default) => syn::parse_quote!(()),
        };
        Ok(Function {
            output: ungrouped(output),
            bindings: bindings(&sig, boxed.as_ref())?,
            body: boxed.as_ref().map(|boxed| boxed.body.clone()).or(block),
            header,
            sig,
            inner_attributes: inner_attributes.unwrap_or_default(),
            boxed,
        })
    }
}

/// The token trees of an item, without the invisible group that `macro_rules!` may put around it.
fn flatten(item: TokenStream) -> Vec<TokenTree> {
    let trees: Vec<TokenTree> = item.into_iter().collect();
    match trees.as_slice() {
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::None => {
            flatten(group.stream())
        }
        _ => trees,
    }
}

/// The block, without such a group.
fn braces(tree: TokenTree) -> Option<Group> {
    match flatten(tree.into()).pop() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    }
}

/// The type, without such a group.
fn ungrouped(mut ty: Type) -> Type {
    while let Type::Group(group) = ty {
        ty = *group.elem;
    }
    ty
}

fn signature(header: TokenStream) -> Result<Signature> {
    let parser = |input: ParseStream<'_>| {
        input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        let fork = input.fork();
        match fork.parse::<Signature>() {
            Ok(_) => input.parse(),
            Err(error) => Err(other_item(input).unwrap_or(error)),
        }
    };
    parser.parse2(header)
}

/// The message about an item that is not a function.
fn other_item(input: ParseStream<'_>) -> Option<Error> {
    loop {
        let keyword = input.call(Ident::parse_any).ok()?;
        let message = match keyword.to_string().as_str() {
            "unsafe" | "auto" | "default" => continue,
            "impl" => {
                "`#[distributed_lock]` goes on one function: put it on the `async fn` of this `impl` block that needs the lock"
            }
            "trait" => {
                "`#[distributed_lock]` goes on one function: put it on an `async fn` of this trait that has a body, or on the methods that implement it"
            }
            "struct" | "enum" | "union" | "mod" | "static" | "const" | "type" | "use" | "macro" => {
                "`#[distributed_lock]` goes on an `async fn`, whose body then runs under the lock"
            }
            _ => return None,
        };
        return Some(Error::new(keyword.span(), message));
    }
}

/// Splits `#![…]` from the statements after it.
fn inner_attributes(body: &Group) -> (TokenStream, Group) {
    let parser = |input: ParseStream<'_>| {
        let attributes = input.call(Attribute::parse_inner)?;
        let statements: TokenStream = input.parse()?;
        Ok((quote!(#(#attributes)*), statements))
    };
    let Ok((attributes, statements)) = parser.parse2(body.stream()) else {
        return (TokenStream::new(), body.clone());
    };
    let mut rest = Group::new(Delimiter::Brace, statements);
    rest.set_span(body.span());
    (attributes, rest)
}

fn bindings(sig: &Signature, boxed: Option<&Boxed>) -> Result<Vec<Ident>> {
    let mut names = Vec::new();
    for argument in &sig.inputs {
        match argument {
            FnArg::Receiver(receiver) => names.push(Ident::new("self", receiver.self_token.span)),
            FnArg::Typed(argument) => bound_by(&argument.pat, &mut names)?,
        }
    }
    for pattern in boxed.iter().flat_map(|boxed| &boxed.patterns) {
        bound_by(pattern, &mut names)?;
    }
    names.extend(sig.generics.const_params().map(|param| param.ident.clone()));
    Ok(names)
}

/// Refuses a pattern that hides what it binds: a key could name it, and would get its value unescaped.
fn bound_by(pattern: &Pat, names: &mut Vec<Ident>) -> Result<()> {
    match pattern {
        Pat::Ident(pattern) => {
            names.push(pattern.ident.clone());
            match &pattern.subpat {
                Some((_, inner)) => bound_by(inner, names),
                None => Ok(()),
            }
        }
        Pat::Or(or) => or.cases.iter().try_for_each(|case| bound_by(case, names)),
        Pat::Paren(paren) => bound_by(&paren.pat, names),
        Pat::Reference(reference) => bound_by(&reference.pat, names),
        Pat::Slice(PatSlice { elems, .. })
        | Pat::Tuple(PatTuple { elems, .. })
        | Pat::TupleStruct(PatTupleStruct { elems, .. }) => {
            elems.iter().try_for_each(|elem| bound_by(elem, names))
        }
        Pat::Struct(fields) => fields
            .fields
            .iter()
            .try_for_each(|f| bound_by(&f.pat, names)),
        Pat::Macro(hides) => {
            let message = "`#[distributed_lock]` cannot see what this pattern binds: give the argument a name, and take it apart in the body";
            Err(Error::new(hides.span(), message))
        }
        _ => Ok(()),
    }
}

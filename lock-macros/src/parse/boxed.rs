//! Recognises what `#[async_trait]` leaves of an `async fn`: `Box::pin(async move { … })`.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{
    AngleBracketedGenericArguments, Expr, GenericArgument, Local, Pat, Path, PathArguments, Result,
    ReturnType, Signature, Stmt, Token, Type, TypeParamBound,
};

/// A sync function that returns a boxed future.
pub(crate) struct Boxed {
    /// `Output` of the future.
    pub(crate) output: Type,
    /// The patterns of arguments that were moved from the signature into the future.
    pub(crate) patterns: Vec<Pat>,
    /// What the future runs.
    pub(crate) body: Group,
    /// From the start of the function to the parenthesis: `Box::pin`.
    pub(crate) before: TokenStream,
    /// `async move`.
    pub(crate) keywords: TokenStream,
    /// The statements that bind the arguments. They stay in front: the key may name what they bind.
    pub(crate) arguments: TokenStream,
}

impl Boxed {
    pub(crate) fn recognize(sig: &Signature, body: &Group) -> Option<Boxed> {
        let output = future_output(&sig.output)?;
        let mut before: Vec<TokenTree> = body.stream().into_iter().collect();
        let future = match before.pop()? {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => group,
            _ => return None,
        };
        if !is_box_pin(&before) {
            return None;
        }
        let mut keywords: Vec<TokenTree> = future.stream().into_iter().collect();
        let block = match keywords.pop()? {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => group,
            _ => return None,
        };
        let span = match keywords.as_slice() {
            [TokenTree::Ident(first), ..] if first == "async" => first.span(),
            _ => return None,
        };
        // Without `move`, the body moves its arguments out of borrows.
        if keywords.len() == 1 {
            keywords.push(Ident::new("move", span).into());
        }
        let arguments = split_arguments.parse2(block.stream()).ok()?;
        let mut body = Group::new(Delimiter::Brace, arguments.rest);
        body.set_span(block.span());
        Some(Boxed {
            output,
            patterns: arguments.patterns,
            body,
            before: TokenStream::from_iter(before),
            keywords: TokenStream::from_iter(keywords),
            arguments: arguments.statements,
        })
    }
}

/// `Box::pin`, perhaps with the path to it, and nothing else: what stands before would run without the lock.
fn is_box_pin(tokens: &[TokenTree]) -> bool {
    let path = Path::parse_mod_style.parse2(tokens.iter().cloned().collect());
    path.is_ok_and(|path| {
        let mut names = path.segments.iter().rev().map(|it| &it.ident);
        names.next().is_some_and(|it| it == "pin") && names.next().is_some_and(|it| it == "Box")
    })
}

/// `T` of `Pin<Box<dyn Future<Output = T>>>`.
fn future_output(output: &ReturnType) -> Option<Type> {
    let ReturnType::Type(_, pin) = output else {
        return None;
    };
    let Type::TraitObject(future) = type_argument(&type_argument(pin, "Pin")?, "Box")? else {
        return None;
    };
    future.bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else {
            return None;
        };
        let arguments = angle_bracketed(&bound.path.segments.last()?.arguments)?;
        arguments.args.iter().find_map(|argument| match argument {
            GenericArgument::AssocType(assoc) if assoc.ident == "Output" => Some(assoc.ty.clone()),
            _ => None,
        })
    })
}

/// `T` of `path::name<T>`.
fn type_argument(ty: &Type, name: &str) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    let segment = path.path.segments.last()?;
    if segment.ident != name {
        return None;
    }
    angle_bracketed(&segment.arguments)?
        .args
        .iter()
        .find_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty.clone()),
            _ => None,
        })
}

fn angle_bracketed(arguments: &PathArguments) -> Option<&AngleBracketedGenericArguments> {
    match arguments {
        PathArguments::AngleBracketed(arguments) => Some(arguments),
        _ => None,
    }
}

struct Arguments {
    statements: TokenStream,
    patterns: Vec<Pat>,
    rest: TokenStream,
}

// Input:
//     if let Some(__ret) = None::<Ret> { return __ret; }
//     let __self = self;
//     let item = item;
//     let (a, b) = { let __arg2 = __arg2; __arg2 };
//     …
//
// Output: the third and the fourth statement, and the others. `self` keeps its name in front.
fn split_arguments(input: ParseStream<'_>) -> Result<Arguments> {
    let mut arguments = Arguments {
        statements: TokenStream::new(),
        patterns: Vec::new(),
        rest: TokenStream::new(),
    };
    while input.peek(Token![if]) || input.peek(Token![let]) {
        let fork = input.fork();
        let Ok(statement) = fork.parse::<Stmt>() else {
            break;
        };
        let tokens = statement.to_token_stream();
        match statement {
            Stmt::Local(local) if destructures(&local) => {
                arguments.statements.extend(tokens);
                arguments.patterns.push(local.pat);
            }
            Stmt::Local(local) if renames_argument(&local) => arguments.statements.extend(tokens),
            Stmt::Local(local) if renames_self(&local) => arguments.rest.extend(tokens),
            Stmt::Expr(Expr::If(check), _) if is_type_check(&check.cond) => {
                arguments.rest.extend(tokens);
            }
            _ => break,
        }
        syn::parse::discouraged::Speculative::advance_to(input, &fork);
    }
    arguments.rest.extend(input.parse::<TokenStream>()?);
    Ok(arguments)
}

/// `let (a, b) = { let __arg1 = __arg1; __arg1 };`
fn destructures(local: &Local) -> bool {
    match local.init.as_ref().map(|init| &*init.expr) {
        Some(Expr::Block(block)) => match block.block.stmts.as_slice() {
            [Stmt::Local(first), Stmt::Expr(Expr::Path(_), None)] => {
                matches!(&first.pat, Pat::Ident(name) if is_argument(&name.ident))
            }
            _ => false,
        },
        _ => false,
    }
}

/// `let x = x;`, `let __arg1 = __arg1;`
fn renames_argument(local: &Local) -> bool {
    renaming(local).is_some_and(|(to, from)| to == from)
}

/// `let __self = self;`
fn renames_self(local: &Local) -> bool {
    renaming(local).is_some_and(|(to, from)| to == "__self" && from == "self")
}

/// The two names of `let to = from;`
fn renaming(local: &Local) -> Option<(&Ident, &Ident)> {
    match (&local.pat, &*local.init.as_ref()?.expr) {
        (Pat::Ident(to), Expr::Path(from)) => Some((&to.ident, from.path.get_ident()?)),
        _ => None,
    }
}

fn is_argument(name: &Ident) -> bool {
    name.to_string().starts_with("__arg")
}

/// `if let Some(__ret) = None::<Ret>`
fn is_type_check(condition: &Expr) -> bool {
    match condition {
        Expr::Let(condition) => match &*condition.pat {
            Pat::TupleStruct(some) => {
                matches!(some.elems.first(), Some(Pat::Ident(name)) if name.ident == "__ret")
            }
            _ => false,
        },
        _ => false,
    }
}

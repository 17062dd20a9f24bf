//! Return types that carry work which runs after the release: streams and futures.

use proc_macro2::Span;
use syn::punctuated::Punctuated;
use syn::{GenericArgument, PathArguments, PathSegment, Token, Type, TypeParamBound};

use crate::expand::pieces::shown_at;

/// Traits whose values do their work when somebody polls them.
const TRAITS: [&str; 5] = [
    "Stream",
    "TryStream",
    "AsyncIterator",
    "Future",
    "TryFuture",
];

/// Names for boxes of such values.
const ALIASES: [&str; 4] = ["BoxStream", "LocalBoxStream", "BoxFuture", "LocalBoxFuture"];

/// Where the type says that its value has work to do, as in `Result<BoxStream<'_, Row>, E>`.
pub(crate) fn work(ty: &Type) -> Option<Span> {
    match ty {
        Type::ImplTrait(opaque) => of_bounds(&opaque.bounds).then(|| shown_at(ty)),
        Type::TraitObject(object) => of_bounds(&object.bounds).then(|| shown_at(ty)),
        Type::Group(group) => work(&group.elem),
        Type::Paren(paren) => work(&paren.elem),
        Type::Reference(reference) => work(&reference.elem),
        Type::Tuple(tuple) => tuple.elems.iter().find_map(work),
        Type::Path(path) => of_segment(path.path.segments.last()?),
        _ => None,
    }
}

fn of_bounds(bounds: &Punctuated<TypeParamBound, Token![+]>) -> bool {
    bounds.iter().any(|bound| match bound {
        TypeParamBound::Trait(bound) => {
            let name = bound.path.segments.last();
            name.is_some_and(|it| TRAITS.iter().any(|name| it.ident == name))
        }
        _ => false,
    })
}

fn of_segment(segment: &PathSegment) -> Option<Span> {
    if ALIASES.iter().any(|name| segment.ident == name) {
        return Some(shown_at(&segment.ident));
    }
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => work(ty),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Section: guarantees.md#no-poll-of-the-body-starts-after-its-deadline
    #[test]
    fn a_type_says_whether_its_value_has_work_to_do() {
        for (ty, late) in [
            ("Result<u32, E>", false),
            ("impl Display", false),
            ("Result<TcpStream, E>", false),
            ("Box<dyn Fn() -> BoxFuture<'static, ()>>", false),
            ("impl Stream<Item = u32> + Send", true),
            ("Option<impl futures::Future<Output = u32>>", true),
            ("io::Result<BoxStream<'_, u32>>", true),
            ("Result<Pin<Box<dyn Stream<Item = u32> + Send>>, E>", true),
            ("Result<(Head, impl TryStream), E>", true),
            ("Result<Sse<impl Stream<Item = Event>>, E>", true),
        ] {
            let parsed = syn::parse_str(ty).unwrap();
            assert_eq!(work(&parsed).is_some(), late, "{ty}");
        }
    }
}

//! The return type, in a form that expressions can name.

use proc_macro2::TokenStream;
use quote::ToTokens as _;
use syn::{GenericArgument, Path, PathArguments, Type, TypeParamBound};

/// The type with `_` for every `impl Trait` in it; `None` for a type that is all `impl Trait`.
pub(crate) fn nameable(ty: &Type) -> Option<TokenStream> {
    if let Type::ImplTrait(_) = ty {
        return None;
    }
    let mut ty = ty.clone();
    infer_impl_traits(&mut ty);
    Some(ty.into_token_stream())
}

fn infer_impl_traits(ty: &mut Type) {
    match ty {
        Type::ImplTrait(_) => *ty = syn::parse_quote!(_),
        Type::Array(array) => infer_impl_traits(&mut array.elem),
        Type::Group(group) => infer_impl_traits(&mut group.elem),
        Type::Paren(paren) => infer_impl_traits(&mut paren.elem),
        Type::Ptr(pointer) => infer_impl_traits(&mut pointer.elem),
        Type::Reference(reference) => infer_impl_traits(&mut reference.elem),
        Type::Slice(slice) => infer_impl_traits(&mut slice.elem),
        Type::Tuple(tuple) => tuple.elems.iter_mut().for_each(infer_impl_traits),
        Type::Path(path) => infer_in_path(&mut path.path),
        Type::TraitObject(object) => {
            for bound in &mut object.bounds {
                if let TypeParamBound::Trait(bound) = bound {
                    infer_in_path(&mut bound.path);
                }
            }
        }
        _ => {}
    }
}

fn infer_in_path(path: &mut Path) {
    for segment in &mut path.segments {
        if let PathArguments::AngleBracketed(arguments) = &mut segment.arguments {
            for argument in &mut arguments.args {
                match argument {
                    GenericArgument::Type(ty) => infer_impl_traits(ty),
                    GenericArgument::AssocType(assoc) => infer_impl_traits(&mut assoc.ty),
                    _ => {}
                }
            }
        }
    }
}

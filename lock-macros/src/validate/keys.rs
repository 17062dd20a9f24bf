//! Refuses keys that are empty, use unknown names, or name the same lock twice.

use syn::ext::IdentExt as _;
use syn::{Error, Expr, Ident, Result};

use crate::errors::Errors;
use crate::parse::keys::{Key, Value};
use crate::validate::scope::Scope;
use crate::validate::template;

/// Reports the first mistake of each key.
pub(crate) fn check(keys: &[Key], scope: Scope<'_>, errors: &mut Errors) {
    for (at, key) in keys.iter().enumerate() {
        let distinct = distinct(key, &keys[..at]);
        errors.ok(distinct.and_then(|()| check_one(key, scope)));
    }
}

pub(crate) fn check_one(key: &Key, scope: Scope<'_>) -> Result<()> {
    let error = |message| Error::new(key.literal.span(), message);
    template::check(&key.template).map_err(|wrong| error(wrong.to_string()))?;
    let mut values = key.values.iter().flatten();
    values
        .try_for_each(|value| check_value(value, scope))
        .map_err(error)
}

fn distinct(key: &Key, earlier: &[Key]) -> Result<()> {
    if earlier.iter().any(|one| one.template == key.template) {
        return Err(Error::new(
            key.literal.span(),
            "this key is in the array already: name another lock, or remove it",
        ));
    }
    Ok(())
}

fn check_value(value: &Value, scope: Scope<'_>) -> std::result::Result<(), String> {
    let Value { source, expr } = value;
    if let Expr::Lit(_) = expr {
        return Err(format!(
            "`{{{source}}}` names nothing: write `{source}` as text, or an argument between the braces"
        ));
    }
    if let (Some(unknown), Scope::Function { name, bindings }) = (root(expr), scope)
        && !scope.binds(&unknown.unraw().to_string())
    {
        let arguments = list(bindings);
        return Err(format!(
            "`{unknown}` in `{{{source}}}` is not an argument of `{name}`{arguments}"
        ));
    }
    Ok(())
}

/// The variable at the start of a chain of fields and methods.
fn root(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Field(field) => root(&field.base),
        Expr::MethodCall(call) => root(&call.receiver),
        Expr::Index(index) => root(&index.expr),
        Expr::Reference(reference) => root(&reference.expr),
        Expr::Unary(unary) => root(&unary.expr),
        Expr::Paren(paren) => root(&paren.expr),
        Expr::Path(path) => path.path.get_ident(),
        _ => None,
    }
}

fn list(bindings: &[Ident]) -> String {
    let names: Vec<_> = bindings.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => ", which has none".to_owned(),
        names => format!(": it has {}", names.join(", ")),
    }
}

//! The name of an annotated function: its module, its type if it is a method, and its own name.

use std::any::type_name;
use std::sync::OnceLock;

/// An annotated function. The expansion has a static `LOCK_FUNCTION` of this type, whose path in
/// the program contains the type of a method: an attribute cannot see it.
#[derive(Debug)]
pub struct Function {
    /// The module and the function.
    plain: &'static str,
    /// The full path of a closure that is written in the static.
    path: fn() -> &'static str,
    name: OnceLock<Box<str>>,
}

impl Function {
    /// The function that `_here` is written in.
    pub const fn new<F: Copy>(plain: &'static str, _here: F) -> Self {
        Self {
            plain,
            path: type_name::<F>,
            name: OnceLock::new(),
        }
    }

    /// `shop::Shelf::take`; without the type if the type has no path.
    pub(crate) fn name(&'static self) -> &'static str {
        self.name.get_or_init(|| {
            let name = readable((self.path)());
            name.map_or_else(|| self.plain.into(), String::into_boxed_str)
        })
    }
}

/// Reads `<shop::Shelf<T> as shop::Stock>::take::{{closure}}::LOCK_FUNCTION::{{closure}}` as
/// `shop::Shelf::take`. The compiler does not promise this form: `None` for any other.
fn readable(path: &str) -> Option<String> {
    let (path, _) = path.rsplit_once("::LOCK_FUNCTION")?;
    let of_impl = match path.find("::<impl ") {
        Some(at) => Some(at + "::".len()),
        None => path.starts_with('<').then_some(0),
    };
    let path = match of_impl {
        None => without_generics(path)?,
        Some(start) => {
            let end = start + closing(&path[start..])?;
            let header = without_generics(&path[start + 1..end])?;
            let header = header.strip_prefix("impl ").unwrap_or(&header);
            // `Type as Trait`, `impl Trait for Type` or `impl Type`
            let ty = match header.split_once(" for ") {
                Some((_, ty)) => ty,
                None => header.split(" as ").next()?,
            };
            format!("{ty}{}", without_generics(&path[end + 1..])?)
        }
    };
    let segments: Vec<_> = path.split("::").filter(|it| *it != "{{closure}}").collect();
    let is_name = |it: &&str| !it.is_empty() && it.chars().all(|c| c.is_alphanumeric() || c == '_');
    segments.iter().all(is_name).then(|| segments.join("::"))
}

/// The position at which the first bracket is closed.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if depth == 1 => return Some(at),
            '>' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

fn without_generics(text: &str) -> Option<String> {
    let (mut kept, mut depth) = (String::with_capacity(text.len()), 0_usize);
    for c in text.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.checked_sub(1)?,
            c if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_compiler_is_read() {
        for (path, name) in [
            ("shop::buy", Some("shop::buy")),
            ("shop::Shelf::take::{{closure}}", Some("shop::Shelf::take")),
            ("shop::Shelf<_>::take", Some("shop::Shelf::take")),
            ("shop::Stock::take", Some("shop::Stock::take")),
            (
                "<shop::Shelf<Vec<_>> as shop::Stock<u8>>::take",
                Some("shop::Shelf::take"),
            ),
            (
                "shop::other::<impl shop::Shelf<core::option::Option<_>>>::take",
                Some("shop::Shelf::take"),
            ),
            ("shop::<impl shop::Stock for u8>::take", Some("u8::take")),
            ("<[_; N] as shop::Stock>::take", None),
            ("<&shop::Shelf as shop::Stock>::take", None),
            ("<dyn core::ops::Fn() -> u8 as shop::Stock>::take", None),
            ("shop::{shim}::take", None),
        ] {
            let read = readable(&format!("{path}::LOCK_FUNCTION::{{{{closure}}}}"));
            assert_eq!(read.as_deref(), name, "{path}");
        }
        assert_eq!(readable("shop::buy"), None);
    }

    struct Shelf<T>(T);

    impl<T> Shelf<T> {
        fn take(&self) -> &'static str {
            static LOCK_FUNCTION: Function = Function::new("plain", || {});
            let _ = &self.0;
            LOCK_FUNCTION.name()
        }
    }

    #[test]
    fn the_compiler_of_today_names_the_type() {
        let name = concat!(module_path!(), "::Shelf::take");
        assert_eq!(Shelf(1).take(), name);
        assert_eq!(Shelf("a").take(), name);
    }
}

//! Writes values into a key, so that none can imitate the text around it.

use std::cell::Cell;
use std::fmt::{self, Write as _};

use super::{LockKey, push_escaped};
use crate::types::error::LockError;

thread_local! {
    /// Whether what is written now comes from a value, and is escaped. It is no field of what
    /// writes the key, since the values do not know that: the caller's own formatter passes them
    /// on, with whatever format spec.
    static IN_VALUE: Cell<bool> = const { Cell::new(false) };
}

/// Whether a value is written until this is dropped, also by a panic. Then it is as it was before:
/// a value may write a key of its own.
struct Writing {
    before: bool,
}

impl Writing {
    fn value(yes: bool) -> Self {
        let before = IN_VALUE.replace(yes);
        Self { before }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        IN_VALUE.set(self.before);
    }
}

/// Writes a key template: text as it is, escaped where it comes from a [`value`] or is
/// [`formatted`].
///
/// # Errors
///
/// [`LockError::InvalidKey`] if it is empty or too long, or a value could not be formatted.
#[inline(never)]
pub fn key(text: fmt::Arguments<'_>) -> Result<LockKey, LockError> {
    let _text = Writing::value(false);
    let mut escaper = Escaper(String::with_capacity(64));
    let written = escaper.write_fmt(text);
    let unformatted = |fmt::Error| "a value in it could not be formatted";
    let key = written.map_err(unformatted);
    key.and_then(|()| LockKey::checked(escaper.0))
        .map_err(|reason| LockError::InvalidKey { reason })
}

/// `value` for `{}`, escaped as it is written.
#[inline]
pub fn value<T: KeyValue + ?Sized>(value: &T) -> Displayed<'_, T> {
    Displayed {
        value,
        display: <T as fmt::Display>::fmt,
    }
}

/// `value` for any format, such as `{:?}`, escaped as it is written.
#[inline]
pub fn formatted<T: ?Sized>(value: &T) -> Value<'_, T> {
    Value(value)
}

struct Escaper(String);

impl fmt::Write for Escaper {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let in_value = IN_VALUE.get();
        text.chars()
            .for_each(|c| push_escaped(&mut self.0, c, in_value));
        Ok(())
    }
}

/// What can stand between the braces of a key: everything that has a `Display`.
/// A trait of its own, so that errors of the compiler speak of keys.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a value in a key",
    label = "this key has a value of type `{Self}`, which does not implement `Display`",
    note = "name a part of it that does, as in `{{item.id}}`, or write `{{item:?}}` if it implements `Debug`"
)]
pub trait KeyValue: fmt::Display {}

#[diagnostic::do_not_recommend]
impl<T: fmt::Display + ?Sized> KeyValue for T {}

/// A value in a key template; see [`value`]. It is displayed whatever its type, since `value` has
/// seen to that: one mistake is one error of the compiler.
#[expect(
    missing_debug_implementations,
    reason = "it is displayed and nothing else"
)]
pub struct Displayed<'a, T: ?Sized> {
    value: &'a T,
    display: fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
}

impl<T: ?Sized> fmt::Display for Displayed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _value = Writing::value(true);
        (self.display)(self.value, f)
    }
}

/// A value in a key template; see [`formatted`].
pub struct Value<'a, T: ?Sized>(&'a T);

macro_rules! forward {
    ($($format:ident),*) => {$(
        impl<T: fmt::$format + ?Sized> fmt::$format for Value<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let _value = Writing::value(true);
                self.0.fmt(f)
            }
        }
    )*};
}

forward!(
    Display, Debug, LowerHex, UpperHex, Octal, Binary, LowerExp, UpperExp, Pointer
);

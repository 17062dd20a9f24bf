//! Writes values into a key, so that none can imitate the text around it.

use std::cell::Cell;
use std::fmt::{self, Write as _};

use super::{LockKey, push_escaped};
use crate::types::error::LockError;

/// Writes a key template: text as it is, values escaped.
///
/// Values are wrapped with [`value`](Self::value) or [`formatted`](Self::formatted),
/// so that the caller's own formatter formats them, with whatever format spec; while
/// it does, a flag tells the writer to escape.
#[derive(Debug, Default)]
pub struct KeyWriter {
    in_value: Cell<bool>,
}

impl KeyWriter {
    /// A writer for one key.
    pub fn new() -> Self {
        Self::default()
    }

    /// `value` for `{}`, escaped as it is written.
    pub fn value<'a, T: KeyValue + ?Sized>(&'a self, value: &'a T) -> Displayed<'a, T> {
        Displayed {
            value: self.formatted(value),
            display: <T as fmt::Display>::fmt,
        }
    }

    /// `value` for any format, such as `{:?}`, escaped as it is written.
    pub fn formatted<'a, T: ?Sized>(&'a self, value: &'a T) -> Value<'a, T> {
        Value {
            in_value: &self.in_value,
            value,
        }
    }

    /// The finished key.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidKey`] if it is empty or too long, or a value could not be formatted.
    pub fn write(&self, text: fmt::Arguments<'_>) -> Result<LockKey, LockError> {
        let mut escaper = Escaper {
            name: String::with_capacity(64),
            in_value: &self.in_value,
        };
        let written = escaper.write_fmt(text);
        let unformatted = |fmt::Error| "a value in it could not be formatted";
        let key = written.map_err(unformatted);
        key.and_then(|()| LockKey::checked(escaper.name))
            .map_err(|reason| LockError::InvalidKey { reason })
    }
}

struct Escaper<'a> {
    name: String,
    in_value: &'a Cell<bool>,
}

impl fmt::Write for Escaper<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let in_value = self.in_value.get();
        text.chars()
            .for_each(|c| push_escaped(&mut self.name, c, in_value));
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

/// A value in a key template; see [`KeyWriter::value`]. It is displayed whatever its
/// type, since `value` has seen to that: one mistake is one error of the compiler.
#[expect(
    missing_debug_implementations,
    reason = "it is displayed and nothing else"
)]
pub struct Displayed<'a, T: ?Sized> {
    value: Value<'a, T>,
    display: fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
}

impl<T: ?Sized> fmt::Display for Displayed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.escaped(|value| (self.display)(value, f))
    }
}

/// A value in a key template; see [`KeyWriter::formatted`].
pub struct Value<'a, T: ?Sized> {
    in_value: &'a Cell<bool>,
    value: &'a T,
}

impl<T: ?Sized> Value<'_, T> {
    /// Tells the writer to escape what `write` writes.
    fn escaped(&self, write: impl FnOnce(&T) -> fmt::Result) -> fmt::Result {
        self.in_value.set(true);
        let result = write(self.value);
        self.in_value.set(false);
        result
    }
}

macro_rules! forward {
    ($($format:ident),*) => {$(
        impl<T: fmt::$format + ?Sized> fmt::$format for Value<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.escaped(|value| value.fmt(f))
            }
        }
    )*};
}

forward!(
    Display, Debug, LowerHex, UpperHex, Octal, Binary, LowerExp, UpperExp, Pointer
);

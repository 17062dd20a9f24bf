//! The lock's name: what may be one, and how values are written into it so
//! that none can imitate the text around it.

use std::cell::Cell;
use std::fmt::{self, Write as _};

/// The longest name in bytes, after escaping.
pub(crate) const MAX_BYTES: usize = 1024;

/// The name of a lock.
///
/// Made from a string (`"nightly"`, `format!(..)`), where `%`, `{`, `}` and
/// control characters are written as `%` and two hexadecimal digits, or with
/// [`key!`](crate::vocabulary::key), which escapes the `:` of its values too: distinct
/// values never make the same name. Names are 1 to 1024 bytes long; others are
/// refused with [`LockError::InvalidKey`] when the lock is taken.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockKey(String);

impl LockKey {
    /// The name, escaped.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A name that is escaped already.
    #[cfg(feature = "redis")]
    pub(crate) fn stored(name: &str) -> Self {
        Self(name.to_owned())
    }

    fn check(&self) -> Result<(), &'static str> {
        match self.0.len() {
            0 => Err("it is empty, or a value in it could not be formatted"),
            1..=MAX_BYTES => Ok(()),
            _ => Err("it is longer than 1024 bytes; put a hash of the long value into it"),
        }
    }
}

impl<T: AsRef<str> + ?Sized> From<&T> for LockKey {
    fn from(text: &T) -> Self {
        let mut name = String::with_capacity(text.as_ref().len());
        text.as_ref()
            .chars()
            .for_each(|c| push_escaped(&mut name, c, false));
        Self(name)
    }
}

impl From<String> for LockKey {
    fn from(text: String) -> Self {
        Self::from(&text)
    }
}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The names that one acquisition takes, all or none of them: sorted, so that no
/// two acquisitions wait for each other, and without repetitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    pub(crate) first: LockKey,
    /// The others in falling order: the next one is the last.
    pub(crate) rest: Vec<LockKey>,
}

impl Keys {
    /// `None` where there are no names.
    pub(crate) fn several(names: impl IntoIterator<Item = LockKey>) -> Option<Self> {
        let mut rest: Vec<_> = names.into_iter().collect();
        rest.sort_unstable_by(|a, b| b.cmp(a));
        rest.dedup();
        let first = rest.pop()?;
        Some(Self { first, rest })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &LockKey> {
        std::iter::once(&self.first).chain(self.rest.iter().rev())
    }

    /// Says why one of them cannot be a name.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        self.iter().try_for_each(LockKey::check)
    }
}

impl From<LockKey> for Keys {
    fn from(first: LockKey) -> Self {
        let rest = Vec::new();
        Self { first, rest }
    }
}

impl<const N: usize> From<[LockKey; N]> for Keys {
    fn from(names: [LockKey; N]) -> Self {
        // An empty name is refused when the lock is taken.
        Self::several(names).unwrap_or_else(|| LockKey(String::new()).into())
    }
}

/// Writes a key template: text as it is, values escaped.
///
/// Values are wrapped with [`value`](Self::value), so that the caller's own
/// formatter formats them, with whatever format spec; while it does, a flag
/// tells the writer to escape.
#[derive(Debug, Default)]
pub struct KeyWriter {
    in_value: Cell<bool>,
}

impl KeyWriter {
    /// A writer for one key.
    pub fn new() -> Self {
        Self::default()
    }

    /// `value`, formatted as its type does, escaped as it is written.
    pub fn value<'a, T: ?Sized>(&'a self, value: &'a T) -> Value<'a, T> {
        Value {
            in_value: &self.in_value,
            value,
        }
    }

    /// The finished key. A value whose formatting fails makes the key invalid.
    pub fn write(&self, text: fmt::Arguments<'_>) -> LockKey {
        let mut escaper = Escaper {
            name: String::with_capacity(64),
            in_value: &self.in_value,
        };
        match escaper.write_fmt(text) {
            Ok(()) => LockKey(escaper.name),
            Err(fmt::Error) => LockKey(String::new()),
        }
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

/// Braces would move or empty the part of a Redis key that chooses its slot,
/// and a `:` in a value would imitate a separator.
fn push_escaped(name: &mut String, c: char, in_value: bool) {
    if matches!(c, '%' | '{' | '}') || c.is_control() || (in_value && c == ':') {
        let mut bytes = [0; 4];
        for byte in c.encode_utf8(&mut bytes).bytes() {
            name.push('%');
            for digit in [byte >> 4, byte & 15] {
                name.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
            }
        }
    } else {
        name.push(c);
    }
}

/// A value in a key template; see [`KeyWriter::value`].
pub struct Value<'a, T: ?Sized> {
    in_value: &'a Cell<bool>,
    value: &'a T,
}

macro_rules! forward {
    ($($format:ident),*) => {$(
        impl<T: fmt::$format + ?Sized> fmt::$format for Value<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.in_value.set(true);
                let result = self.value.fmt(f);
                self.in_value.set(false);
                result
            }
        }
    )*};
}

forward!(
    Display, Debug, LowerHex, UpperHex, Octal, Binary, LowerExp, UpperExp, Pointer
);

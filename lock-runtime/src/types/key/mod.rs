//! The names of locks: their rules, and the escaping of values, so that no value can imitate the
//! text around it.

pub(crate) mod writer;

#[cfg(feature = "redis")]
use std::borrow::Cow;
use std::fmt;
use std::hash::Hasher as _;

use crate::base::numbers::Spread;

/// The longest name in bytes, after escaping.
pub(crate) const MAX_BYTES: usize = 1024;

/// The name of a lock.
///
/// [`new`](Self::new) makes one from text, and escapes `%`, `{`, `}` and control characters in it
/// as `%` and two hexadecimal digits. [`key!`](crate::key!) escapes the `:` of its values too:
/// distinct values never make the same name. A name has 1 to 1024 bytes.
///
/// Methods that take an [`IntoKey`](crate::IntoKey) accept text too. Pass an existing `LockKey` on
/// unchanged, by value or by reference:
///
/// ```
/// # async fn example() -> Result<(), lock_runtime::LockError> {
/// # let locks = lock_runtime::LockManager::connect("memory:").await?;
/// let guard = locks.lock("50%").acquire().await?;
/// assert_eq!(guard.key(), "50%25");
/// assert!(locks.status(guard.key()).await?.is_held());
/// # Ok(()) }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
/// ```
///
/// A comparison with text uses the escaped form, as in [`as_str`](Self::as_str).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockKey(String);

impl LockKey {
    /// The escaped name, for people, logs and a look at the server. [`new`](Self::new) would
    /// escape it once more and name another lock: pass on the `LockKey` itself, or read the name
    /// with [`from_escaped`](Self::from_escaped).
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// One bit of 64, which other keys may have too.
    pub(crate) fn mark(&self) -> u64 {
        let mut hasher = Spread::default();
        hasher.write(self.0.as_bytes());
        1 << (hasher.finish() >> 58)
    }

    /// Escapes the text, or says why it cannot be a name.
    pub(crate) fn read(text: &str) -> Result<Self, &'static str> {
        Self::checked(escaped(text, false))
    }

    /// Reads an escaped name, or says what is wrong with it.
    pub(crate) fn read_escaped(name: &str) -> Result<Self, &'static str> {
        // A `:` may be a separator or part of a value.
        let again = unescaped(name).map(|text| escaped(&text, true));
        if again != Some(name.replace(':', "%3A")) {
            return Err("it is not escaped as `LockKey::as_str` is; \
                        make it from the text with `LockKey::new`");
        }
        Self::checked(name.to_owned())
    }

    fn checked(name: String) -> Result<Self, &'static str> {
        match name.len() {
            0 => Err("it is empty"),
            1..=MAX_BYTES => Ok(Self(name)),
            _ => Err("it is longer than 1024 bytes; put a hash of the long value into it"),
        }
    }

    #[cfg(any(test, fuzzing))]
    pub(crate) fn of(text: &str) -> Self {
        Self::read(text).expect("a name")
    }

    /// Takes a name from a store unchanged: it was escaped and checked when the lock was taken.
    pub(crate) fn unchecked(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The text of the name without escapes; different names may have the same.
    #[cfg(feature = "redis")]
    pub(crate) fn text(&self) -> Cow<'_, str> {
        if !self.0.contains('%') {
            return Cow::Borrowed(&self.0);
        }
        unescaped(&self.0).map_or(Cow::Borrowed(&self.0), Cow::Owned)
    }
}

/// Compares the escaped name.
impl PartialEq<str> for LockKey {
    fn eq(&self, name: &str) -> bool {
        self.0 == name
    }
}

/// Compares the escaped name.
impl PartialEq<&str> for LockKey {
    fn eq(&self, name: &&str) -> bool {
        self.0 == *name
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

/// Braces would move or empty the part of a Redis key that selects its slot, and a `:` in a value
/// would imitate a separator.
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

pub(crate) fn escaped(text: &str, in_value: bool) -> String {
    let mut name = String::with_capacity(text.len());
    text.chars()
        .for_each(|c| push_escaped(&mut name, c, in_value));
    name
}

/// The original text of a name; `None` if it is not an escaped name.
fn unescaped(name: &str) -> Option<String> {
    let mut parts = name.split('%');
    let mut text: Vec<u8> = parts.next()?.into();
    for part in parts {
        let (digits, plain) = part.split_at_checked(2)?;
        text.push(u8::from_str_radix(digits, 16).ok()?);
        text.extend_from_slice(plain.as_bytes());
    }
    String::from_utf8(text).ok()
}

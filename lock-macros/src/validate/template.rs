//! Refuses templates that are empty or too long, or that could build one key from different values.

use std::fmt;

use crate::parse::template::{Part, Placeholder, Template};

/// The most bytes that a key may have.
const MAX_TEXT: usize = 1024;

/// Why a template cannot be a key: one sentence that says what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Empty,
    NoSeparator(String, String),
    TooLong(usize),
}

/// The text between two values must contain the one character that never occurs in a value.
pub(crate) fn check(template: &Template) -> Result<(), Refused> {
    let mut text_size = 0;
    let mut before: Option<&Placeholder> = None;
    let mut separated = false;
    for part in &template.parts {
        match part {
            Part::Text(text) => {
                text_size += text.len();
                separated = text.contains(':');
            }
            Part::Value(value) => {
                if let Some(before) = before.filter(|_| !separated) {
                    return Err(Refused::NoSeparator(before.to_string(), value.to_string()));
                }
                before = Some(value);
                separated = false;
            }
        }
    }
    match text_size {
        0 if before.is_none() => Err(Refused::Empty),
        0..=MAX_TEXT => Ok(()),
        _ => Err(Refused::TooLong(text_size)),
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(
                f,
                "the key is empty: name the lock, as in `\"stock:{{id}}\"`"
            ),
            Self::NoSeparator(before, after) => write!(
                f,
                "`{before}` and `{after}` need a `:` between them: without it (\"1-2\", \"3\") and (\"1\", \"2-3\") could make one key"
            ),
            Self::TooLong(size) => write!(
                f,
                "the text of this key has {size} bytes, and a key has at most {MAX_TEXT}: shorten it"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(source: &str) -> Option<Refused> {
        check(&source.parse().unwrap()).err()
    }

    #[test]
    fn refuses_templates_that_name_no_lock_of_their_own() {
        let no_separator =
            |before: &str, after: &str| Some(Refused::NoSeparator(before.into(), after.into()));
        assert_eq!(refused(""), Some(Refused::Empty));
        assert_eq!(refused("{a}{b}"), no_separator("{a}", "{b}"));
        assert_eq!(refused("{a}:{b}-{c:04}"), no_separator("{b}", "{c:04}"));
        assert_eq!(refused(&"x".repeat(1025)), Some(Refused::TooLong(1025)));
        assert_eq!(refused(&"x".repeat(1024)), None);
        assert_eq!(refused("{a}"), None);
        assert_eq!(refused("{a}-:-{b}"), None);
    }

    #[test]
    fn names_the_pair_without_a_separator() {
        assert_eq!(
            refused("{a}-{b}").unwrap().to_string(),
            "`{a}` and `{b}` need a `:` between them: without it (\"1-2\", \"3\") and (\"1\", \"2-3\") could make one key"
        );
    }
}

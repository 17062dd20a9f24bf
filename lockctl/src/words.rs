//! Texts from a store, made fit for a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text without what would move the cursor or hide in a line. What other programs
/// wrote into a store may be anything.
pub(crate) fn tame(text: &str) -> Cow<'_, str> {
    if !text.contains(is_wild) {
        return text.into();
    }
    let mut tame = String::with_capacity(text.len());
    for c in text.chars() {
        if is_wild(c) {
            // Writing into a text does not fail.
            let _ = write!(tame, "{}", c.escape_unicode());
        } else {
            tame.push(c);
        }
    }
    tame.into()
}

/// Control characters, and those that turn the direction of a text around.
pub(crate) fn is_wild(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `1 waiter`, `2 waiters`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// `none is held`, `1 is held`, `2 are held`.
pub(crate) fn are_held(locks: usize) -> String {
    match locks {
        0 => "none is held".to_owned(),
        1 => "1 is held".to_owned(),
        _ => format!("{locks} are held"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_does_not_command_the_terminal() {
        assert_eq!(tame("stock:lämp <b>"), "stock:lämp <b>");
        assert_eq!(tame("\u{1b}[2Jx\n\u{202e}"), "\\u{1b}[2Jx\\u{a}\\u{202e}");
    }
}

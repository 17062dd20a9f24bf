//! Objects as text that commands no terminal.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use crate::words::is_wild;

/// The object on one line. What [`tame`](crate::words::tame) keeps from a terminal is escaped.
pub(crate) fn text(object: &impl Serialize) -> serde_json::Result<String> {
    let mut text = Vec::new();
    object.serialize(&mut Serializer::with_formatter(&mut text, Tame))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

struct Tame;

impl Formatter for Tame {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, wild)) = rest.char_indices().find(|(_, c)| is_wild(*c)) {
            writer.write_all(&rest.as_bytes()[..at])?;
            for unit in wild.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = &rest[at + wild.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_does_not_command_the_terminal() {
        let key = "lämp\u{9b}2J\u{202e}\u{7f}\u{1b}\"";
        let text = text(&[key]).expect("an object");
        assert_eq!(text, r#"["lämp\u009b2J\u202e\u007f\u001b\""]"#);
        let read: [String; 1] = serde_json::from_str(&text).expect("the same");
        assert_eq!(read, [key]);
    }
}

//! SQL that is sent with arguments, and the types of these.

use super::mark::Mark;

/// The type of an argument. All are written as text, in the type's own syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Bool,
    Int4,
    Int8,
    Text,
    Uuid,
    Int4Array,
    TextArray,
    UuidArray,
}

impl Type {
    /// The number of the type, which every server has alike.
    pub(super) fn oid(self) -> u32 {
        match self {
            Self::Bool => 16,
            Self::Int8 => 20,
            Self::Int4 => 23,
            Self::Text => 25,
            Self::Int4Array => 1007,
            Self::TextArray => 1009,
            Self::Uuid => 2950,
            Self::UuidArray => 2951,
        }
    }
}

/// One statement of SQL.
#[derive(Debug)]
pub(crate) struct Statement {
    /// The name under which it is prepared; `None` if it is not worth it.
    pub(crate) name: Option<&'static str>,
    pub(super) text: String,
    pub(super) types: &'static [Type],
}

impl Statement {
    /// A statement that a server parses once for each connection, unless a pooler is in
    /// front of it.
    pub(crate) fn prepared(name: &'static str, text: String, types: &'static [Type]) -> Self {
        let name = Some(name);
        Self { name, text, types }
    }

    /// The same with a mark at the end of each row.
    pub(super) fn marked(&self, mark: Mark) -> Self {
        Self {
            text: mark.on(&self.text),
            ..*self
        }
    }

    /// A statement that is parsed with each call.
    pub(crate) fn once(text: impl Into<String>, types: &'static [Type]) -> Self {
        Self {
            name: None,
            text: text.into(),
            types,
        }
    }
}

//! The tables and functions that a server must have.

#[derive(Clone, Debug)]
pub(crate) struct Schema {
    /// As the URL names it: a name that needs no quotes.
    pub(crate) name: Box<str>,
    /// The oldest version that can be used.
    pub(crate) version: i32,
    /// Creates or upgrades it, within a transaction.
    pub(crate) script: String,
}

impl Schema {
    /// The name in a statement: it may be a word of SQL.
    pub(crate) fn quoted(&self) -> String {
        format!("\"{}\"", self.name)
    }
}

//! The arguments of a call, as SQL writes them: texts and tokens as hexadecimal digits, which need no quotes.

use std::fmt;

use crate::backend::token::Token;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arg {
    Null,
    Number(i64),
    Bytes(Vec<u8>),
    /// Numbers and hexadecimal digits as JSON, which need no escapes.
    Json(String),
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Number(number) => number.fmt(f),
            Self::Json(json) => write!(f, "'{json}'"),
            Self::Bytes(bytes) => {
                write!(f, "x'{}'", Hex(bytes))
            }
        }
    }
}

/// Bytes as two digits each.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|it| write!(f, "{it:02x}"))
    }
}

impl From<bool> for Arg {
    fn from(value: bool) -> Self {
        Self::Number(value.into())
    }
}

impl From<i64> for Arg {
    fn from(value: i64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Arg {
    fn from(value: &str) -> Self {
        Self::Bytes(value.as_bytes().to_vec())
    }
}

impl From<String> for Arg {
    fn from(value: String) -> Self {
        Self::Bytes(value.into_bytes())
    }
}

impl From<Vec<u8>> for Arg {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(value)
    }
}

impl From<Token> for Arg {
    fn from(value: Token) -> Self {
        Self::Bytes(value.number().to_be_bytes().to_vec())
    }
}

impl<T> From<Option<T>> for Arg
where
    Self: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_the_server_reads_them() {
        let token = Token::parse("00112233445566778899aabbccddeeff").expect("a token");
        for (arg, expected) in [
            (Arg::from(true), "1"),
            (Arg::from(-7), "-7"),
            (Arg::from("a'\\é"), "x'61275cc3a9'"),
            (Arg::from(""), "x''"),
            (Arg::from(token), "x'00112233445566778899aabbccddeeff'"),
            (Arg::from(None::<i64>), "NULL"),
            (Arg::Json("[[1,\"x\"]]".into()), "'[[1,\"x\"]]'"),
        ] {
            assert_eq!(arg.to_string(), expected);
        }
    }
}

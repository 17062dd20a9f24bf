//! The arguments of a call, as a server reads them from text.

use std::fmt::{self, Write as _};

use bytes::{BufMut as _, BytesMut};

use crate::backend::token::Token;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arg {
    Null,
    Bool(bool),
    Number(i64),
    Text(Box<str>),
    Token(Token),
    Bools(Vec<bool>),
    Numbers(Vec<i64>),
    Texts(Vec<Box<str>>),
    Tokens(Vec<Token>),
    OptionalNumbers(Vec<Option<i64>>),
    OptionalTexts(Vec<Option<Box<str>>>),
}

impl Arg {
    pub(super) fn is_null(&self) -> bool {
        *self == Self::Null
    }

    /// Writes the value without its length; nothing for `NULL`.
    pub(super) fn write(&self, out: &mut BytesMut) -> fmt::Result {
        match self {
            Self::Null => Ok(()),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Number(number) => write!(out, "{number}"),
            Self::Text(text) => {
                out.put_slice(text.as_bytes());
                Ok(())
            }
            Self::Token(token) => write!(out, "{token}"),
            Self::Bools(all) => array(all, out, |it, out| write!(out, "{it}")),
            Self::Numbers(all) => array(all, out, |it, out| write!(out, "{it}")),
            Self::Texts(all) => array(all, out, |it, out| quoted(it, out)),
            Self::Tokens(all) => array(all, out, |it, out| write!(out, "{it}")),
            Self::OptionalNumbers(all) => array(all, out, |it, out| match it {
                Some(number) => write!(out, "{number}"),
                None => out.write_str("NULL"),
            }),
            Self::OptionalTexts(all) => array(all, out, |it, out| match it {
                Some(text) => quoted(text, out),
                None => out.write_str("NULL"),
            }),
        }
    }
}

fn array<T>(
    items: &[T],
    out: &mut BytesMut,
    write: impl Fn(&T, &mut BytesMut) -> fmt::Result,
) -> fmt::Result {
    out.put_u8(b'{');
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            out.put_u8(b',');
        }
        write(item, out)?;
    }
    out.put_u8(b'}');
    Ok(())
}

fn quoted(text: &str, out: &mut BytesMut) -> fmt::Result {
    out.put_u8(b'"');
    for char in text.chars() {
        if matches!(char, '"' | '\\') {
            out.put_u8(b'\\');
        }
        out.write_char(char)?;
    }
    out.put_u8(b'"');
    Ok(())
}

macro_rules! from {
    ($($of:ty => $variant:ident),* $(,)?) => {
        $(impl From<$of> for Arg {
            fn from(value: $of) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

from! {
    bool => Bool,
    i32 => Number,
    u32 => Number,
    i64 => Number,
    &str => Text,
    String => Text,
    Box<str> => Text,
    Token => Token,
    Vec<bool> => Bools,
    Vec<i64> => Numbers,
    Vec<Box<str>> => Texts,
    Vec<Token> => Tokens,
    Vec<Option<i64>> => OptionalNumbers,
    Vec<Option<Box<str>>> => OptionalTexts,
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
            (Arg::from(true), "true"),
            (Arg::from(-7_i64), "-7"),
            (Arg::from("a\"b"), "a\"b"),
            (Arg::from(token), "00112233445566778899aabbccddeeff"),
            (Arg::from(None::<i64>), ""),
            (Arg::from(vec![false, true]), "{false,true}"),
            (Arg::from(vec![1_i64, 2]), "{1,2}"),
            (
                Arg::from(vec![token; 2]),
                "{00112233445566778899aabbccddeeff,00112233445566778899aabbccddeeff}",
            ),
            (Arg::from(vec![None, Some(3_i64)]), "{NULL,3}"),
            (
                Arg::from(vec![None, Some(Box::from("NULL")), Some("".into())]),
                r#"{NULL,"NULL",""}"#,
            ),
            (
                Arg::from(vec![Box::from(r#"a,"b\{é"#), "c}".into()]),
                r#"{"a,\"b\\{é","c}"}"#,
            ),
            (Arg::Texts(Vec::new()), "{}"),
        ] {
            let mut out = BytesMut::new();
            arg.write(&mut out).expect("written");
            assert_eq!(std::str::from_utf8(&out), Ok(expected));
        }
    }
}

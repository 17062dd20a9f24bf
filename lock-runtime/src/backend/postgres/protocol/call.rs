//! Calls: one statement with its arguments, which is a transaction of its own.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

use super::arg::Arg;
use super::mark::Mark;
use super::statement::Statement;
use crate::backend::sql::time_limit::beyond_rows;

/// The functions wait for a row for 700 ms: where another call waits for the same row, first until that one gives up, and
/// then again. With the longest time limit of a call, that is 400 ms more than both.
const BEYOND: Duration = Duration::from_millis(800);
/// Values are text, in both directions.
const TEXT: i16 = 0;

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) statement: Arc<Statement>,
    pub(crate) args: Vec<Arg>,
    /// How long the server may be silent before the connection counts as broken.
    pub(crate) timeout: Duration,
}

/// The server's knowledge of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It is prepared under its name.
    Prepared,
    /// It may be prepared, and is not for sure.
    Unsure,
    /// It is not to be prepared: the next call may go to another server.
    Never,
}

impl Call {
    /// A call to one of our functions, or a statement in its place.
    pub(crate) fn new(statement: Arc<Statement>, args: Vec<Arg>, timeout: Duration) -> Self {
        Self {
            statement,
            args,
            timeout: beyond_rows(timeout, BEYOND),
        }
    }

    /// The same with a mark at the end of each row of its answer.
    pub(crate) fn marked(self, mark: Mark) -> Self {
        let statement = Arc::new(self.statement.marked(mark));
        Self { statement, ..self }
    }

    /// Writes the messages of the call. Its own `Sync` makes an error of it its own.
    pub(crate) fn write(&self, known: Known, out: &mut BytesMut) {
        self.try_write(known, out)
            .expect("statements have no NUL in them, and arguments are short");
    }

    fn try_write(&self, known: Known, out: &mut BytesMut) -> Result<(), ()> {
        let statement = &*self.statement;
        let name = statement.name.filter(|_| known != Known::Never);
        let is_prepared = name.is_some() && known == Known::Prepared;
        let name = name.unwrap_or_default();
        if !is_prepared {
            if !name.is_empty() {
                // No error if there is none of that name.
                frontend::close(b'S', name, out).map_err(drop)?;
            }
            let types = statement.types.iter().map(|it| it.oid());
            frontend::parse(name, &statement.text, types, out).map_err(drop)?;
        }
        let value = |arg: &Arg, out: &mut BytesMut| {
            arg.write(out)?;
            Ok(if arg.is_null() {
                IsNull::Yes
            } else {
                IsNull::No
            })
        };
        frontend::bind("", name, [TEXT], &self.args, value, [TEXT], out).map_err(drop)?;
        frontend::execute("", 0, out).map_err(drop)?;
        frontend::sync(out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::postgres::protocol::statement::Type;

    fn tags(call: &Call, known: Known) -> String {
        let mut out = BytesMut::new();
        call.write(known, &mut out);
        let mut tags = String::new();
        while let Some((tag, rest)) = out.split_first() {
            let length = u32::from_be_bytes(rest[..4].try_into().expect("a length"));
            tags.push(char::from(*tag));
            let _ = out.split_to(1 + length as usize);
        }
        tags
    }

    #[test]
    fn a_statement_is_parsed_until_it_is_surely_prepared() {
        let call = |statement| Call {
            statement: Arc::new(statement),
            args: vec![1_i64.into()],
            timeout: Duration::ZERO,
        };
        let named = call(Statement::prepared("n", "SELECT $1".into(), &[Type::Int8]));
        for (known, expected) in [
            (Known::Prepared, "BES"),
            (Known::Unsure, "CPBES"),
            (Known::Never, "PBES"),
        ] {
            assert_eq!(tags(&named, known), expected);
        }
        let once = call(Statement::once("SELECT $1", &[Type::Int8]));
        for known in [Known::Prepared, Known::Unsure, Known::Never] {
            assert_eq!(tags(&once, known), "PBES");
        }
    }

    #[test]
    fn a_call_is_written_as_the_manual_says() {
        let call = Call {
            statement: Arc::new(Statement::prepared(
                "n",
                "S".into(),
                &[Type::Int4, Type::Text],
            )),
            args: vec![42.into(), Arg::Null],
            timeout: Duration::ZERO,
        };
        let mut out = BytesMut::new();
        call.write(Known::Prepared, &mut out);
        let expected: &[u8] =
            b"B\0\0\0\x1b\0n\0\0\x01\0\0\0\x02\0\0\0\x0242\xff\xff\xff\xff\0\x01\0\0\
            E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
        assert_eq!(&out[..], expected);
    }
}

//! The answer to one call, gathered from the messages of the server.

use std::io;

use postgres_protocol::message::backend::Message;

use super::error::ServerError;
use super::values;
use crate::backend::sql::row::Row;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) result: Result<Vec<Row>, ServerError>,
    /// Warnings beside which a success may not be one.
    pub(crate) warnings: Vec<ServerError>,
    /// Whether the statement of the call was parsed.
    pub(crate) was_parsed: bool,
}

/// The most memory that an answer may take; thousands of locks take a megabyte.
const MOST: usize = 64 << 20;

/// The part of an answer that has come in.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    rows: Vec<Row>,
    error: Option<ServerError>,
    warnings: Vec<ServerError>,
    was_parsed: bool,
    /// How much memory it takes.
    size: usize,
}

impl Gathering {
    /// Adds a message; the answer, if that was its last one.
    pub(crate) fn take(&mut self, message: &Message) -> io::Result<Option<Answer>> {
        match message {
            Message::DataRow(body) => {
                let row = values::row(body)?;
                self.grow(row.size())?;
                self.rows.push(row);
            }
            Message::ErrorResponse(body) => self.error = Some(ServerError::read(body.fields())?),
            Message::NoticeResponse(body) => self.note(ServerError::read(body.fields())?)?,
            Message::ParseComplete => self.was_parsed = true,
            Message::ReadyForQuery(_) => return Ok(Some(self.finish())),
            Message::BindComplete
            | Message::CloseComplete
            | Message::CommandComplete(_)
            | Message::EmptyQueryResponse
            | Message::NoData
            | Message::RowDescription(_) => {}
            _ => return Err(strange()),
        }
        Ok(None)
    }

    /// The error after which the server closes the connection.
    pub(crate) fn fatal(&mut self) -> Option<ServerError> {
        self.error.take_if(|it| it.is_fatal())
    }

    fn note(&mut self, notice: ServerError) -> io::Result<()> {
        if notice.casts_doubt() {
            self.grow(size_of::<ServerError>() + notice.message.len())?;
            self.warnings.push(notice);
        }
        Ok(())
    }

    fn grow(&mut self, size: usize) -> io::Result<()> {
        self.size += size;
        if self.size > MOST {
            let text = format!("the answer is larger than {} MB", MOST >> 20);
            return Err(io::Error::other(text));
        }
        Ok(())
    }

    fn finish(&mut self) -> Answer {
        let Self {
            rows,
            error,
            warnings,
            was_parsed,
            ..
        } = std::mem::take(self);
        Answer {
            result: error.map_or(Ok(rows), Err),
            warnings,
            was_parsed,
        }
    }
}

/// For a message that no server sends at that point.
pub(crate) fn strange() -> io::Error {
    io::Error::other("the server does not answer as PostgreSQL does")
}

#[cfg(test)]
mod tests {
    use bytes::{BufMut as _, BytesMut};

    use super::*;

    /// Messages as they come in.
    fn gather(messages: &[(u8, &[u8])]) -> Vec<Answer> {
        let mut bytes = BytesMut::new();
        for (tag, body) in messages {
            bytes.put_u8(*tag);
            bytes.put_u32(4 + u32::try_from(body.len()).expect("short"));
            bytes.put_slice(body);
        }
        let (mut gathering, mut answers) = (Gathering::default(), Vec::new());
        while let Some(message) = Message::parse(&mut bytes).expect("a message") {
            answers.extend(gathering.take(&message).expect("known"));
        }
        answers
    }

    #[test]
    fn an_answer_without_end_is_given_up() {
        let mut bytes = BytesMut::from(&b"D\0\x10\0\x0a\0\x01\0\x10\0\0"[..]);
        bytes.resize(bytes.len() + (1 << 20), b'a');
        let row = Message::parse(&mut bytes).expect("a row").expect("whole");
        let mut gathering = Gathering::default();
        let taken = (0..100).take_while(|_| gathering.take(&row).is_ok());
        assert_eq!(taken.count(), 63);
        gathering.finish();
        assert!(gathering.take(&row).is_ok());
    }

    #[test]
    fn an_error_touches_its_own_call_alone() {
        let answers = gather(&[
            (b'1', b""),
            (b'2', b""),
            (b'D', b"\0\x02\0\0\0\x027a\xff\xff\xff\xff"),
            (b'C', b"SELECT 1\0"),
            (b'Z', b"I"),
            (b'E', b"VERROR\0C40001\0Mno\0\0"),
            (b'Z', b"I"),
            (b'N', b"VWARNING\0C01000\0Mhm\0\0"),
            (b'N', b"VNOTICE\0C00000\0Mhm\0\0"),
            (b'N', b"VWARNING\0C01000\0Mhm\0RGetNewTransactionId\0\0"),
            (b'C', b"SELECT 0\0"),
            (b'Z', b"I"),
        ]);
        let [rows, error, warned] = &answers[..] else {
            panic!("{answers:?}");
        };
        let [row] = &rows.result.as_ref().expect("rows")[..] else {
            panic!("{rows:?}");
        };
        assert!(rows.was_parsed && !error.was_parsed);
        assert_eq!((row.text(0), row.number::<i32>(0)), (Some("7a"), None));
        assert!(row.text(1).is_none() && row.text(2).is_none());
        let error = error.result.as_ref().expect_err("refused");
        assert_eq!(error.to_string(), "no (SQLSTATE 40001)");
        assert!(warned.result.as_ref().is_ok_and(Vec::is_empty));
        let codes: Vec<_> = warned.warnings.iter().map(|it| &*it.code).collect();
        assert_eq!(codes, ["01000"]);
    }
}

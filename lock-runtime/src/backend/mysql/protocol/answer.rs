//! The answer to one call, gathered from the packets of the server.

use std::io;

use bytes::Bytes;

use super::bytes::Rest;
use super::error::ServerError;
use super::packet::strange;
use crate::backend::sql::row::Row;

/// The most memory that an answer may take; thousands of locks take a megabyte.
const MOST: usize = 64 << 20;
/// More than any statement of ours asks for.
const MOST_COLUMNS: u64 = 64;
/// In the status of a server: another answer follows.
const MORE: u64 = 8;

pub(crate) type Answer = Result<Vec<Row>, ServerError>;

/// The part of an answer that has come in.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    rows: Vec<Row>,
    stage: Stage,
    /// How much memory it takes.
    size: usize,
}

/// The packets that come next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Head,
    /// The descriptions of so many columns, and then their end.
    Columns {
        left: u64,
        all: u64,
    },
    Rows {
        columns: u64,
    },
}

impl Gathering {
    /// Adds a packet; the answer, if that was its last one. The rows of a procedure end with a word of its own.
    pub(crate) fn take(
        &mut self,
        payload: &Bytes,
        is_procedure: bool,
    ) -> io::Result<Option<Answer>> {
        let mut rest = Rest(payload);
        let mark = *payload.first().ok_or_else(strange)?;
        if mark == 0xff && !matches!(self.stage, Stage::Columns { .. }) {
            rest.byte()?;
            let error = ServerError::read(rest)?;
            *self = Self::default();
            return Ok(Some(Err(error)));
        }
        let is_end = mark == 0xfe && payload.len() < 9;
        match self.stage {
            Stage::Head if mark == 0 => return Ok(Some(Ok(self.finish()))),
            // A file to be sent.
            Stage::Head if mark == 0xfb => return Err(strange()),
            Stage::Head => {
                let all = rest.length()?.filter(|it| *it <= MOST_COLUMNS);
                let all = all.ok_or_else(strange)?;
                self.stage = Stage::Columns { left: all, all };
            }
            Stage::Columns { left: 0, all } if is_end => {
                self.stage = Stage::Rows { columns: all };
            }
            Stage::Columns { left: 0, .. } => return Err(strange()),
            Stage::Columns { left, all } => {
                let left = left - 1;
                self.stage = Stage::Columns { left, all };
            }
            Stage::Rows { .. } if is_end => {
                self.stage = Stage::Head;
                if !is_procedure {
                    return Ok(Some(Ok(self.finish())));
                }
                rest.take(3)?;
                if rest.number(2)? & MORE == 0 {
                    return Err(strange());
                }
            }
            Stage::Rows { columns } => {
                let row = row(payload, columns)?;
                self.grow(row.size())?;
                self.rows.push(row);
            }
        }
        Ok(None)
    }

    fn grow(&mut self, size: usize) -> io::Result<()> {
        self.size += size;
        if self.size > MOST {
            let text = format!("the answer is larger than {} MB", MOST >> 20);
            return Err(io::Error::other(text));
        }
        Ok(())
    }

    fn finish(&mut self) -> Vec<Row> {
        std::mem::take(self).rows
    }
}

fn row(payload: &Bytes, columns: u64) -> io::Result<Row> {
    let mut rest = Rest(payload);
    let mut values = Vec::new();
    for _ in 0..columns {
        let Some(length) = rest.length()? else {
            values.push(None);
            continue;
        };
        let begin = payload.len() - rest.0.len();
        let length = rest
            .take(usize::try_from(length).map_err(|_| strange())?)?
            .len();
        values.push(Some(begin..begin + length));
    }
    if rest.is_empty() {
        Ok(Row::new(payload.clone(), values))
    } else {
        Err(strange())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: &[u8] = b"\0\0\0\x02\0\0\0";
    const END: &[u8] = b"\xfe\0\0\x02\0";
    const MORE_TO_COME: &[u8] = b"\xfe\0\0\x0a\0";

    fn gather(payloads: &[&'static [u8]], is_procedure: bool) -> Vec<Answer> {
        let mut gathering = Gathering::default();
        let taken = payloads.iter().map(|payload| {
            let taken = gathering.take(&Bytes::from_static(payload), is_procedure);
            taken.expect("known")
        });
        taken.flatten().collect()
    }

    #[test]
    fn the_rows_of_a_procedure_end_with_a_word_of_its_own() {
        let result: [&'static [u8]; 6] =
            [b"\x02", b"one", b"two", END, b"\x027a\xfb", MORE_TO_COME];
        let answers = gather(&[&result[..], &result[..], &[OK]].concat(), true);
        let [Ok(rows)] = &answers[..] else {
            panic!("{answers:?}");
        };
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[1].text(0), rows[1].text(1)), (Some("7a"), None));
        assert!(rows[1].text(2).is_none());
    }

    #[test]
    fn more_columns_than_any_statement_asks_for_are_no_answer() {
        let mut take = Gathering::default();
        assert!(take.take(&Bytes::from_static(b"\x41"), false).is_err());
        let mut take = Gathering::default();
        assert!(take.take(&Bytes::from_static(b"\x40"), false).is_ok());
    }

    #[test]
    fn an_error_ends_an_answer_at_any_point() {
        let error: &'static [u8] = b"\xff\xbd\x04#40001Deadlock";
        let some: [&[&'static [u8]]; 3] = [
            &[],
            &[b"\x01", b"one", END],
            &[b"\x01", b"one", END, b"\x017"],
        ];
        for before in some {
            let answers = gather(&[before, &[error, OK][..]].concat(), true);
            assert!(
                matches!(&answers[..], [Err(_), Ok(rows)] if rows.is_empty()),
                "{answers:?}"
            );
        }
    }

    #[test]
    fn a_statement_ends_with_its_rows() {
        let answers = gather(&[b"\x01", b"one", END, b"\x017", END, OK], false);
        assert_eq!(answers.len(), 2);
    }

    #[test]
    fn an_answer_without_end_is_given_up() {
        let mut gathering = Gathering::default();
        for payload in [b"\x01", &b"one"[..], END] {
            gathering
                .take(&Bytes::from_static(payload), true)
                .expect("known");
        }
        let mut row = vec![0xfd, 0, 0, 0x10];
        row.resize(4 + (1 << 20), b'a');
        let row = Bytes::from(row);
        let taken = (0..100).take_while(|_| gathering.take(&row, true).is_ok());
        assert_eq!(taken.count(), 63);
    }
}

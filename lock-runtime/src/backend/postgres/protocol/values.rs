//! The values in the message of a row.

use std::io;

use fallible_iterator::FallibleIterator as _;
use postgres_protocol::message::backend::DataRowBody;

use crate::backend::sql::row::Row;

pub(super) fn row(body: &DataRowBody) -> io::Result<Row> {
    let values = body.ranges().collect()?;
    Ok(Row::new(body.buffer_bytes().clone(), values))
}

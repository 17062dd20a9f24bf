//! `lockctl sql`: the script for migrations of a PostgreSQL database.

use crate::exit::{Done, Exit};
use crate::output;

pub(crate) fn sql(schema: &str) -> Done {
    output::line(lock_runtime::postgres_script(schema).trim_end())?;
    Ok(Exit::Success)
}

//! `lockctl sql`: the script for migrations of a PostgreSQL or MySQL database.

use crate::exit::{Done, Exit};
use crate::output;

pub(crate) fn sql(schema: &str, mysql: bool) -> Done {
    let script = if mysql {
        lock_runtime::mysql_script()
    } else {
        lock_runtime::postgres_script(schema)
    };
    output::line(script.trim_end())?;
    Ok(Exit::Success)
}

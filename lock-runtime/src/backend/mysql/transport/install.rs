//! Creates or upgrades the tables and procedures of the locks.

use super::prepare::{one, schema_version};
use super::wire::Wire;
use crate::backend::mysql::protocol::error::ServerError;
use crate::backend::mysql::sql;
use crate::backend::sql::parameters::Install;
use crate::backend::sql::trouble::Trouble;

/// One manager at a time installs in a database. MySQL 9.7 has no `SHA1`.
const BEGIN: &str = "SELECT GET_LOCK(LEFT(CONCAT('lock_runtime:', SHA2(DATABASE(), 256)), 64), 10)";
const END: &str = "SELECT RELEASE_LOCK(LEFT(CONCAT('lock_runtime:', SHA2(DATABASE(), 256)), 64))";

/// Ensures that tables and procedures exist, are new enough, and are open to the user. `found` is the server's
/// answer about their version.
pub(super) async fn ensure(
    wire: &mut Wire,
    install: Install,
    database: &str,
    found: Result<i32, ServerError>,
) -> Result<(), Trouble> {
    let Some(lack) = lack(database, found)? else {
        return Ok(());
    };
    if install == Install::Never {
        return Err(by_hand(&lack, "`install=never` forbids a change"));
    }
    let turn = wire.ask(BEGIN).await?;
    if one(&turn)?.truth(0) != Some(true) {
        return Err(Trouble::not_now(format!(
            "somebody else installs the procedures for locks in the database `{database}`"
        )));
    }
    // Another manager may have been faster.
    let found = schema_version(wire).await?;
    if self::lack(database, found)?.is_some() {
        let statements: Vec<_> = sql::statements().collect();
        if let Err(error) = wire.ask_all(&statements).await? {
            if error.is_forbidden() {
                let why = format!("the user may not change it ({error})");
                return Err(by_hand(&lack, &why));
            }
            return Err(error.into());
        }
    }
    wire.ask(END).await??;
    Ok(())
}

/// The missing part, if any.
fn lack(database: &str, found: Result<i32, ServerError>) -> Result<Option<String>, Trouble> {
    let needed = sql::VERSION;
    match found {
        Ok(found) if found >= needed => Ok(None),
        Ok(found) => Ok(Some(format!(
            "the procedures for locks in the database `{database}` have version {found}, and version {needed} is needed"
        ))),
        // A user without any right to procedures is told the same of one that is there and of one that is not.
        Err(error) if error.is_not_there() || error.is_forbidden() => Ok(Some(format!(
            "the database `{database}` has no procedures for locks that the user may call"
        ))),
        Err(error) => Err(error.into()),
    }
}

fn by_hand(lack: &str, why: &str) -> Trouble {
    let what = "an administrator must run what `lockctl sql --mysql` prints, and `GRANT EXECUTE` to the user";
    Trouble::invalid("install", format!("{lack}, and {why}: {what}"))
}

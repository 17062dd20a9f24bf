//! Creates or upgrades the schema of the locks.

use postgres_protocol::message::frontend;

use super::prepare::{schema_version, version_of};
use super::wire::Wire;
use crate::backend::postgres::protocol::error::ServerError;
use crate::backend::postgres::protocol::schema::Schema;
use crate::backend::postgres::sql::identifier;
use crate::backend::sql::parameters::Install;
use crate::backend::sql::trouble::Trouble;

/// One manager at a time installs schemas.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; \
     SELECT pg_catalog.pg_advisory_xact_lock(7811887152104564336); SAVEPOINT looked";

/// Ensures that the schema exists, is new enough, and is open to the user. `found` is the server's
/// answer about its version.
pub(super) async fn ensure(
    wire: &mut Wire,
    schema: &Schema,
    install: Install,
    user: &str,
    found: Result<i32, ServerError>,
) -> Result<(), Trouble> {
    let Some(lack) = lack(schema, user, found)? else {
        return Ok(());
    };
    if install == Install::Never {
        return Err(by_hand(&lack, "`install=never` forbids a change"));
    }
    run(wire, BEGIN).await?;
    // Another manager may be faster.
    let version = wire.ask(schema_version(&schema.quoted())).await?;
    if self::lack(schema, user, version_of(version))?.is_none() {
        return run(wire, "ROLLBACK").await;
    }
    // The script commits. It recognizes its own writes by the number of the transaction, which a
    // savepoint has too.
    let script = format!("ROLLBACK TO looked; RELEASE looked; {}", schema.script);
    match try_run(wire, &script).await? {
        Err(error) if error.is_forbidden() => Err(by_hand(
            &lack,
            &format!("the user may not change it ({error})"),
        )),
        result => Ok(result?),
    }
}

/// The missing part, if any.
fn lack(
    schema: &Schema,
    user: &str,
    found: Result<i32, ServerError>,
) -> Result<Option<String>, Trouble> {
    let Schema { name, version, .. } = schema;
    match found {
        Ok(found) if found >= *version => Ok(None),
        Ok(found) => Ok(Some(format!(
            "the schema `{name}` has version {found}, and version {version} is needed"
        ))),
        Err(error) if error.is_not_there() => Ok(Some(format!(
            "the database has no schema `{name}` for locks"
        ))),
        Err(error) if error.is_forbidden() => {
            let user = identifier(user);
            let grant = format!("GRANT USAGE ON SCHEMA {} TO {user}", schema.quoted());
            let why = format!(
                "the user may not use the schema `{name}` ({error}): its owner must run `{grant}`"
            );
            Err(Trouble::invalid("schema", why))
        }
        Err(error) => Err(error.into()),
    }
}

fn by_hand(lack: &str, why: &str) -> Trouble {
    let what = "an administrator must run what `lockctl sql` prints";
    Trouble::invalid("schema", format!("{lack}, and {why}: {what}"))
}

async fn run(wire: &mut Wire, text: &str) -> Result<(), Trouble> {
    Ok(try_run(wire, text).await??)
}

/// Runs several statements, which end with the first error.
async fn try_run(wire: &mut Wire, text: &str) -> Result<Result<(), ServerError>, Trouble> {
    frontend::query(text, wire.out())?;
    Ok(wire.answer().await?.result.map(drop))
}

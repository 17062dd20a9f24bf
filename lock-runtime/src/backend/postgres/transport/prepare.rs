//! Finds out what a server is, and prepares the connection for its first call.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::standbys::Standbys;
use super::wire::Wire;
use crate::backend::postgres::protocol::answer::Answer;
use crate::backend::postgres::protocol::arg::Arg;
use crate::backend::postgres::protocol::call::Call;
use crate::backend::postgres::protocol::error::ServerError;
use crate::backend::postgres::protocol::statement::{Statement, Type};
use crate::backend::sql::row::Row;
use crate::backend::sql::session::Session;
use crate::backend::sql::trouble::Trouble;

const OLDEST: u32 = 140_000;

/// How long the connection before has to end before this one gets another session.
const END_OF_PREDECESSOR: Duration = Duration::from_secs(1);

/// A bell that is tried by others for a moment is tried again after this.
const AGAIN: Duration = Duration::from_millis(10);

const WHO: &str = "SELECT pg_catalog.version()";

const FACTS: &str = "SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery(), \
     s('transaction_read_only'), s('server_version_num'), s('server_encoding'), \
     s('default_transaction_isolation'), s('client_min_messages'), s('synchronous_standby_names'), s('synchronous_commit')";

/// Nothing may hide that the wait for a standby was cancelled, and only the functions' own time limit tells a wait for a row.
const SETTINGS: &str = "SELECT s('default_transaction_isolation', 'read committed', false), \
     s('idle_session_timeout', '0', false), s('client_min_messages', 'warning', false), s('statement_timeout', '0', false)";

/// Grants are refused once the first setting is another one than it is now, and the second one stays as it is.
const DEPEND_ON_STANDBYS: &str = "SELECT \
     pg_catalog.set_config('lock_runtime.standbys', pg_catalog.current_setting('synchronous_standby_names'), false), \
     pg_catalog.set_config('synchronous_commit', pg_catalog.current_setting('synchronous_commit'), false)";

/// Others hold the bell of a session for a moment too, and share it.
const END_PREDECESSOR: &str = "SELECT pg_catalog.pg_terminate_backend(l.pid, $2) \
     FROM pg_catalog.pg_locks l, (SELECT SCHEMA.bell($1) AS key) bell \
     WHERE l.locktype = 'advisory' AND l.mode = 'ExclusiveLock' AND l.granted AND l.objsubid = 1 \
     AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()) \
     AND l.classid::int8 = (bell.key >> 32) & 4294967295 AND l.objid::int8 = bell.key & 4294967295 \
     AND l.pid <> pg_catalog.pg_backend_pid()";

const TAKE_BELL: &str = "SELECT pg_catalog.pg_try_advisory_lock(SCHEMA.bell($1))";

/// The facts that a server reports of itself.
pub(super) struct Facts {
    pub(super) version: u32,
    pub(super) is_pooled: bool,
    pub(super) standbys: Standbys,
    /// The version of the schema, or why it is not known.
    pub(super) schema: Result<i32, ServerError>,
}

/// Asks a server what it is; refuses one on which no lock can be kept. There may be a pooler, so it asks
/// for one thing at a time.
pub(super) async fn look(
    wire: &mut Wire,
    process: Option<i32>,
    schema: &str,
) -> Result<Facts, Trouble> {
    let facts = FACTS.replace("s(", "pg_catalog.current_setting(");
    let who = wire.ask(call(WHO)).await?;
    let facts = wire.ask(call(&facts)).await?;
    let schema = wire.ask(schema_version(schema)).await?;
    demand_postgres(one(&who)?.text(0).unwrap_or_default())?;
    let facts = one(&facts)?;
    let version = facts.number(3).unwrap_or(0);
    let is_pooled = process.is_none() || process != facts.number(0);
    demand_usable(facts, version, is_pooled)?;
    Ok(Facts {
        version,
        is_pooled,
        standbys: standbys(facts, 7),
        schema: version_of(schema),
    })
}

pub(super) fn schema_version(schema: &str) -> Call {
    call(&format!("SELECT {schema}.version()"))
}

/// The version in the answer of a server.
pub(super) fn version_of(answer: Answer) -> Result<i32, ServerError> {
    let rows = answer.result?;
    Ok(rows.first().and_then(|row| row.number(0)).unwrap_or(0))
}

/// Others speak the same protocol, and keep other promises.
fn demand_postgres(version: &str) -> Result<(), Trouble> {
    for (mark, name) in [("CockroachDB", "CockroachDB"), ("-YB-", "YugabyteDB")] {
        if version.contains(mark) {
            let why = format!(
                "the server is {name}, on which no locks can be kept: it must be PostgreSQL"
            );
            return Err(Trouble::invalid("url", why));
        }
    }
    Ok(())
}

fn demand_usable(facts: &Row, version: u32, is_pooled: bool) -> Result<(), Trouble> {
    if facts.truth(1) == Some(true) {
        return Err(Trouble::not_now(
            "the server is a standby, which does not write",
        ));
    }
    if facts.text(2) == Some("on") {
        return Err(Trouble::not_now(
            "the server only reads: turn off `default_transaction_read_only` of the server, the database or the role",
        ));
    }
    if version < OLDEST {
        let major = version / 10_000;
        let why = format!("the server is PostgreSQL {major}: it must be 14 or newer");
        return Err(Trouble::invalid("url", why));
    }
    match facts.text(4).unwrap_or_default() {
        "UTF8" => {}
        other => {
            let why = format!("the database is encoded in {other}: it must be UTF8");
            return Err(Trouble::invalid("url", why));
        }
    }
    if is_pooled {
        demand_settings(facts)?;
    }
    Ok(())
}

/// Behind a pooler nothing can be set: the connections to the server are everybody's.
fn demand_settings(facts: &Row) -> Result<(), Trouble> {
    for (column, name, is_right, right) in [
        (
            5,
            "default_transaction_isolation",
            (|it| it == "read committed") as fn(&str) -> bool,
            "'read committed'",
        ),
        (
            6,
            "client_min_messages",
            |it| !matches!(it, "error" | "fatal" | "panic"),
            "warning",
        ),
    ] {
        let found = facts.text(column).unwrap_or_default();
        if !is_right(found) {
            let why = format!(
                "behind a pooler, the role's {name} counts, and it is `{found}`: run `ALTER ROLE … SET {name} = {right}`"
            );
            return Err(Trouble::invalid("url", why));
        }
    }
    Ok(())
}

/// Overrides settings that a role may have.
pub(super) async fn set(wire: &mut Wire) -> Result<(), Trouble> {
    let settings = SETTINGS.replace("s(", "pg_catalog.set_config(");
    let answer = wire.ask(call(&settings)).await?;
    one(&answer).map(drop)
}

/// Lets the server refuse grants when it waits for other standbys than these, which it has noted.
pub(super) async fn depend_on_standbys(wire: &mut Wire) -> Result<Standbys, Trouble> {
    let answer = wire.ask(call(DEPEND_ON_STANDBYS)).await?;
    one(&answer).map(|row| standbys(row, 0))
}

/// Reads the two settings that say which standbys are waited for.
fn standbys(row: &Row, first: usize) -> Standbys {
    let text = |column| row.text(column).unwrap_or_default();
    Standbys::read(text(first), text(first + 1))
}

/// Ends the connection that had this session before, so that none of its calls is carried out any
/// more, and takes its bell. If that connection does not end, this one gets another session.
pub(super) async fn take_bell(
    wire: &mut Wire,
    schema: &str,
    session: Session,
    timeout: Duration,
) -> Result<Session, Trouble> {
    let most = END_OF_PREDECESSOR.min(timeout / 2);
    let until = Instant::now() + most;
    let millis = i64::try_from(most.as_millis()).unwrap_or(i64::MAX);
    let end = Call {
        statement: once(
            &END_PREDECESSOR.replace("SCHEMA", schema),
            &[Type::Uuid, Type::Int8],
        ),
        args: vec![session.token().into(), millis.into()],
        timeout: Duration::MAX,
    };
    // The right to end it may be missing.
    wire.ask(end).await?;
    let taken = wire.ask(bell(schema, session)).await?;
    let mut taken = is_taken(&taken)?;
    while !taken && Instant::now() < until {
        sleep(AGAIN).await;
        let again = wire.ask(bell(schema, session)).await?;
        taken = is_taken(&again)?;
    }
    if taken {
        return Ok(session);
    }
    let session = Session::new().map_err(|error| Trouble::NotNow(Arc::new(error)))?;
    let fresh = wire.ask(bell(schema, session)).await?;
    if is_taken(&fresh)? {
        return Ok(session);
    }
    Err(Trouble::not_now(
        "the server does not let the connection take its bell",
    ))
}

fn bell(schema: &str, session: Session) -> Call {
    Call {
        statement: once(&TAKE_BELL.replace("SCHEMA", schema), &[Type::Uuid]),
        args: vec![session.token().into()],
        timeout: Duration::MAX,
    }
}

fn is_taken(answer: &Answer) -> Result<bool, Trouble> {
    Ok(one(answer)?.truth(0) == Some(true))
}

fn call(text: &str) -> Call {
    Call {
        statement: once(text, &[]),
        args: Vec::<Arg>::new(),
        timeout: Duration::MAX,
    }
}

fn once(text: &str, types: &'static [Type]) -> Arc<Statement> {
    Arc::new(Statement::once(text, types))
}

/// The only row of an answer.
fn one(answer: &Answer) -> Result<&Row, Trouble> {
    match &answer.result {
        Ok(rows) => rows
            .first()
            .ok_or_else(|| Trouble::not_now("the server answers nothing")),
        Err(error) => Err(error.clone().into()),
    }
}

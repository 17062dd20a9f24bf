//! Finds out what a server is, and prepares the connection for its first call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::server::keeps_commits;
use super::wire::Wire;
use crate::backend::mysql::protocol::answer::Answer;
use crate::backend::mysql::protocol::arg::Arg;
use crate::backend::mysql::protocol::error::ServerError;
use crate::backend::sql::row::Row;
use crate::backend::sql::session::Session;
use crate::backend::sql::trouble::Trouble;

/// How long the connection before has to end before this one gets another session.
const END_OF_PREDECESSOR: Duration = Duration::from_secs(1);

/// A bell that is still taken is tried again after this.
const AGAIN: Duration = Duration::from_millis(10);

/// Whoever waits for the row of a lock longer than this tries again.
const SETTINGS: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE";
const MORE_SETTINGS: &str = "SET SESSION autocommit = 1, time_zone = '+00:00', wait_timeout = 2147483, \
     innodb_lock_wait_timeout = 1, lock_wait_timeout = 1, sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
     completion_type = 'NO_CHAIN', sql_select_limit = 18446744073709551615 /*M! , max_statement_time = 0 */";

const FACTS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'super_read_only', \
     'innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', 'binlog_format', 'wsrep_on')";

/// The facts that a server reports of itself.
pub(super) struct Facts {
    /// Whether a crash forgets no commit that was answered.
    pub(super) is_durable: bool,
    /// The version of the tables and procedures, or why it is not known.
    pub(super) schema: Result<i32, ServerError>,
}

/// Asks a server what it is; refuses one on which no lock can be kept.
pub(super) async fn look(wire: &mut Wire) -> Result<Facts, Trouble> {
    let version = wire.ask("SELECT VERSION()").await?;
    demand_version(one(&version)?.text(0).unwrap_or_default())?;
    let facts = wire.ask(FACTS).await??;
    let facts: BTreeMap<_, _> = facts
        .iter()
        .filter_map(|row| Some((row.text(0)?, row.text(1)?)))
        .collect();
    // New versions have more words for it than one.
    let is_on = |name| {
        facts
            .get(name)
            .is_some_and(|it| !matches!(*it, "OFF" | "0"))
    };
    if is_on("read_only") || is_on("super_read_only") {
        return Err(Trouble::not_now(
            "the server only reads, as a replica does: its `read_only` is on",
        ));
    }
    if is_on("wsrep_on") {
        let why = "the server is a node of a Galera cluster, where two nodes may grant a lock at the same time: \
                   it must be a server of its own, with replicas";
        return Err(Trouble::invalid("url", why));
    }
    let text = |name| facts.get(name).copied().unwrap_or_default();
    if is_on("log_bin") && text("binlog_format") == "STATEMENT" {
        let why = "the server writes its binary log as statements, so that it refuses the transactions of locks: set its \
                   `binlog_format` to `ROW` or `MIXED`";
        return Err(Trouble::invalid("url", why));
    }
    Ok(Facts {
        is_durable: keeps_commits(
            text("innodb_flush_log_at_trx_commit"),
            text("log_bin"),
            text("sync_binlog"),
        ),
        schema: schema_version(wire).await?,
    })
}

/// The version of the tables and procedures.
pub(super) async fn schema_version(wire: &mut Wire) -> Result<Result<i32, ServerError>, Trouble> {
    let answer = wire.call("CALL lock_runtime_version()").await?;
    Ok(answer.map(|rows| rows.first().and_then(|row| row.number(0)).unwrap_or(0)))
}

/// Others speak the same protocol, and keep other promises.
fn demand_version(version: &str) -> Result<(), Trouble> {
    if version.contains("TiDB") {
        let why = "the server is TiDB, on which no locks can be kept: it must be MySQL or MariaDB";
        return Err(Trouble::invalid("url", why));
    }
    let is_mariadb = version.contains("MariaDB");
    let (name, oldest) = if is_mariadb {
        ("MariaDB", (10, 6))
    } else {
        ("MySQL", (8, 0))
    };
    let mut numbers = version.split('.').map_while(|it| it.parse::<u32>().ok());
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found < oldest {
        let why = format!(
            "the server is {name} {version}: it must be MySQL 8.0 or MariaDB 10.6, or newer"
        );
        return Err(Trouble::invalid("url", why));
    }
    Ok(())
}

/// Overrides settings that a server or a user may have.
pub(super) async fn set(wire: &mut Wire) -> Result<(), Trouble> {
    for settings in [SETTINGS, MORE_SETTINGS] {
        wire.ask(settings).await??;
    }
    Ok(())
}

/// Ends the connection that had this session before, so that none of its calls is carried out any
/// more, and takes its bell. If that connection does not end, this one gets another session.
pub(super) async fn take_bell(
    wire: &mut Wire,
    session: Session,
    timeout: Duration,
) -> Result<Session, Trouble> {
    let until = Instant::now() + END_OF_PREDECESSOR.min(timeout / 2);
    let holder = wire
        .ask(&format!("SELECT IS_USED_LOCK({})", bell(session)))
        .await?;
    if let Some(holder) = one(&holder)?.number::<u64>(0) {
        // It may have ended by now, and the right to end it may be missing.
        drop(wire.ask(&format!("KILL {holder}")).await?);
    }
    let mut taken = try_bell(wire, session).await?;
    while !taken && Instant::now() < until {
        sleep(AGAIN).await;
        taken = try_bell(wire, session).await?;
    }
    if taken {
        return Ok(session);
    }
    let session = Session::new().map_err(|error| Trouble::NotNow(Arc::new(error)))?;
    if try_bell(wire, session).await? {
        return Ok(session);
    }
    Err(Trouble::not_now(
        "the server does not let the connection take its bell",
    ))
}

async fn try_bell(wire: &mut Wire, session: Session) -> Result<bool, Trouble> {
    let taken = wire
        .ask(&format!("SELECT GET_LOCK({}, 0)", bell(session)))
        .await?;
    Ok(one(&taken)?.truth(0) == Some(true))
}

/// The name of a session's bell, as the procedures write it.
fn bell(session: Session) -> String {
    format!(
        "CONCAT('lock_runtime:', HEX({}))",
        Arg::from(session.token())
    )
}

/// The only row of an answer.
pub(super) fn one(answer: &Answer) -> Result<&Row, Trouble> {
    match answer {
        Ok(rows) => rows
            .first()
            .ok_or_else(|| Trouble::not_now("the server answers nothing")),
        Err(error) => Err(error.clone().into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_servers_and_others_are_refused() {
        for (version, is_served) in [
            ("8.0.36", true),
            ("9.1.0-commercial", true),
            ("10.6.0-MariaDB", true),
            ("10.11.19-MariaDB-0+deb12u1", true),
            ("11.4.2-MariaDB", true),
            ("5.7.44-log", false),
            ("10.5.23-MariaDB", false),
            ("8.0.11-TiDB-v7.5.0", false),
            ("", false),
        ] {
            assert_eq!(demand_version(version).is_ok(), is_served, "{version}");
        }
    }
}

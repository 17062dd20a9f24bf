//! Whether a server may have forgotten locks, as it may after a restart, and as a replica
//! may that has become the master; and for how long nothing must be granted then.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisError, Value, from_redis_value};

use super::wire::Io;
use crate::backend::redis::protocol::names::KeyNames;
use crate::backend::redis::protocol::reply::{Trouble, text};
use crate::backend::redis::protocol::scripts;

/// How long a master that is cut off from its replicas goes on, where nobody can say: the
/// default of servers.
const MAX_LAG: Duration = Duration::from_secs(10);

/// What a server tells of itself.
struct Origin {
    run: String,
    uptime: Duration,
    /// Whether it has been a replica, or has restarted with the data of one.
    promoted: bool,
    max_lag: Duration,
}

/// For how long nothing must be granted, if no lease is longer than `longest`.
pub(super) async fn left(
    (connection, io): (&mut MultiplexedConnection, &mut Io),
    names: &KeyNames,
    longest: Duration,
) -> Result<Option<Duration>, Trouble> {
    let asking = async {
        let origin = origin(connection).await?;
        note(connection, names, &origin, longest).await
    };
    tokio::select! {
        left = asking => left,
        () = io => Err(Trouble::said("the server closed the connection")),
    }
}

async fn origin(connection: &mut MultiplexedConnection) -> Result<Origin, Trouble> {
    let mut question = redis::pipe();
    question.cmd("INFO").arg("server");
    question.cmd("INFO").arg("replication");
    question
        .cmd("CONFIG")
        .arg("GET")
        .arg("min-replicas-max-lag");
    let count = question.len();
    let answers = connection.send_packed_commands(&question, 0, count).await;
    let answers = answers.map_err(broken)?;
    let [server, replication, lag] = &answers[..] else {
        return Err(mismatch());
    };
    let (server, replication) = (info(server)?, info(replication)?);
    if field(&replication, "role") != Some("master") {
        return Err(Trouble::said("the server is a replica"));
    }
    let uptime = field(&server, "uptime_in_seconds").and_then(|it| it.parse().ok());
    let lag: Option<(String, u64)> = from_redis_value(lag.clone()).ok();
    Ok(Origin {
        run: field(&server, "run_id").ok_or_else(mismatch)?.to_owned(),
        uptime: Duration::from_secs(uptime.ok_or_else(mismatch)?),
        promoted: field(&replication, "master_replid2").is_some_and(|it| it.contains(|c| c != '0')),
        max_lag: lag.map_or(MAX_LAG, |(_, seconds)| Duration::from_secs(seconds)),
    })
}

/// Notes the run with the data. A lease that was granted before the server started, or
/// before another run was noticed, has ended then.
async fn note(
    connection: &mut MultiplexedConnection,
    names: &KeyNames,
    origin: &Origin,
    longest: Duration,
) -> Result<Option<Duration>, Trouble> {
    let mut call = scripts::QUARANTINE.call(true);
    call.arg(1).arg(&*names.run);
    call.arg(&origin.run).arg(u8::from(origin.promoted));
    let noted: Result<(u64, u64), _> = call.query_async(connection).await;
    let (now, noticed) = noted.map_err(|error| Trouble::from_connecting(error, names))?;
    let since_noticed = Duration::from_millis(now.saturating_sub(noticed));
    let after_start = longest.checked_sub(origin.uptime);
    let after_change = (longest + origin.max_lag).checked_sub(since_noticed);
    let after_change = after_change.filter(|_| noticed > 0);
    let left = after_start.max(after_change);
    Ok(left.filter(|left| !left.is_zero()))
}

fn info(answer: &Value) -> Result<String, Trouble> {
    match answer {
        Value::VerbatimString { text, .. } => Ok(text.clone()),
        Value::ServerError(error) => Err(Trouble::refused(&format!(
            "`quarantine` needs INFO to learn since when the server runs, which is refused: {}",
            error.details().unwrap_or(error.code())
        ))),
        other => Ok(text(other).ok_or_else(mismatch)?.into_owned()),
    }
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':');
    info.lines().find_map(value).map(str::trim)
}

fn mismatch() -> Trouble {
    Trouble::said("the server tells too little of itself for `quarantine`")
}

fn broken(error: RedisError) -> Trouble {
    Trouble::NotNow(Arc::new(error))
}

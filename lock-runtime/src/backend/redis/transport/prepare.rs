//! Prepares a connection for its first acquire, and learns which one it is.

use std::io;
use std::time::Instant;

use redis::aio::MultiplexedConnection;
use redis::{Pipeline, RedisResult, Value};

use crate::backend::redis::protocol::names::KeyNames;
use crate::backend::redis::protocol::scripts;
use crate::backend::redis::protocol::trouble::{IN_CLUSTER, IS_REPLICA};
use crate::types::holder::THIS_PROCESS;

/// Identifies one connection to the server.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The server's name for itself, a new one with each start.
    run: String,
    /// The server's number for the connection, if it says that. Numbers restart with the server.
    number: Option<i64>,
    /// The time of its clock, in µs since 1970, and the moment of the question.
    pub(super) clock: Option<(u64, Instant)>,
}

/// Refuses a replica: the answer of a sentinel, or of a name server, may be out of date, and a
/// replica that lags says of a lock that it is not held. Unless it `is_needed`, a server that does
/// not tell is taken for a master.
pub(super) async fn demand_master(
    connection: &mut MultiplexedConnection,
    is_needed: bool,
) -> RedisResult<()> {
    let role: Value = match redis::cmd("ROLE").query_async(connection).await {
        Err(error) if !is_needed && error.code().is_some() => return Ok(()),
        role => role?,
    };
    if is_master(&role) {
        return Ok(());
    }
    Err(io::Error::other(IS_REPLICA).into())
}

/// Whether a server is, by its answer to `ROLE`.
pub(super) fn is_master(role: &Value) -> bool {
    let Value::Array(role) = role else {
        return false;
    };
    matches!(role.first(), Some(Value::BulkString(role)) if role == b"master")
}

/// The replicas of another server know nothing of what this one grants.
pub(super) async fn demand_same(
    connection: &mut MultiplexedConnection,
    ours: Option<&Identity>,
) -> RedisResult<()> {
    let Some(ours) = ours else {
        let said =
            "the server does not say which one it is: `replicas` needs the right to run `INFO`";
        return Err(io::Error::other(said).into());
    };
    let mut question = redis::cmd("INFO");
    let info: Value = question.arg("server").query_async(connection).await?;
    if field(&info, "run_id:") == Some(&*ours.run) {
        return Ok(());
    }
    let said = "the address leads to several servers, and each has replicas of its own";
    Err(io::Error::other(said).into())
}

/// The id of a cluster's node.
pub(super) async fn node(connection: &mut MultiplexedConnection) -> RedisResult<String> {
    let mut id = redis::cmd("CLUSTER");
    id.arg("MYID").query_async(connection).await
}

/// Does what must be done before the first acquire; returns the identity of the
/// connection, if the user has the right to ask for it.
pub(super) async fn prepare(
    connection: &mut MultiplexedConnection,
    names: &KeyNames,
    old: Option<&Identity>,
) -> RedisResult<Option<Identity>> {
    let channels = names.channels();
    connection.subscribe(&channels[..]).await?;

    let first = first_calls(names, &channels[0]);
    let count = first.len();
    let asked = Instant::now();
    let mut answers = connection.send_packed_commands(&first, 0, count).await?;
    if !names.is_declared() {
        if answers.get(1).and_then(|info| field(info, "redis_mode:")) == Some("cluster") {
            return Err(io::Error::other(IN_CLUSTER).into());
        }
        if names.layout.has_counter() {
            answers.pop().unwrap_or(Value::Nil).extract_error()?;
        }
    }
    if answers.pop().unwrap_or(Value::Nil).extract_error()? == Value::Int(0) {
        return Err(io::Error::other("the server does not deliver messages").into());
    }
    let ours = identity(&answers, asked);
    // After a restart, the old number may be a stranger's.
    if let (Some(old), Some(ours)) = (old, &ours)
        && old.run == ours.run
        && let Some(number) = old.number
    {
        let mut close = redis::pipe();
        close.cmd("CLIENT").arg("KILL").arg("ID").arg(number);
        // It may have ended already, or we have no right to.
        connection.send_packed_commands(&close, 0, 1).await?;
    }
    Ok(ours)
}

/// The first calls of a connection: they test that grants are delivered, and load the scripts.
fn first_calls(names: &KeyNames, channel: &str) -> Pipeline {
    let mut first = redis::pipe();
    first.cmd("CLIENT").arg("ID");
    first.cmd("INFO").arg("server");
    first.cmd("CLIENT").arg("SETNAME").arg(client_name());
    for script in scripts::LOADED {
        first.add_command(names.script(script).load());
    }
    first.cmd("PUBLISH").arg(channel).arg("");
    if names.layout.has_counter() {
        let mut raise = scripts::OPEN.call(true);
        raise.arg(1).arg(&*names.fence);
        first.add_command(raise);
    }
    first
}

/// The server's identity for this connection, if the user has the right to ask for it.
fn identity(answers: &[Value], asked: Instant) -> Option<Identity> {
    let [number, info, ..] = answers else {
        return None;
    };
    let number = match number {
        Value::Int(number) => Some(*number),
        _ => None,
    };
    let clock = field(info, "server_time_usec:").and_then(|it| it.parse().ok());
    field(info, "run_id:").map(|run| Identity {
        run: run.to_owned(),
        number,
        clock: clock.map(|it| (it, asked)),
    })
}

/// The name that `CLIENT LIST` shows to operators: printable ASCII only.
fn client_name() -> String {
    let host = THIS_PROCESS
        .host
        .replace(|c: char| !c.is_ascii_graphic(), "-");
    format!("lock-runtime:{}@{host}", THIS_PROCESS.id)
}

/// A field of the server's `INFO`.
fn field<'a>(info: &'a Value, name: &str) -> Option<&'a str> {
    let text = match info {
        Value::VerbatimString { text, .. } => text,
        Value::BulkString(text) => std::str::from_utf8(text).ok()?,
        _ => return None,
    };
    text.lines().find_map(|line| line.strip_prefix(name))
}

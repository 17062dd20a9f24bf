//! Opens one connection, and prepares it for its first acquire.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, ConnectionInfo, ProtocolVersion, PushInfo, PushKind, RedisError,
    RedisResult, Value,
};
use tokio::sync::mpsc;

use super::stream;
use crate::backend::redis::protocol::call::KeyNames;
use crate::backend::redis::protocol::scripts;

/// How many pipelines may wait to be written.
const PIPELINES: usize = 1024;

/// An open connection.
pub(crate) struct Opened {
    pub(crate) connection: MultiplexedConnection,
    /// Reads and writes while it is polled; ends with the connection.
    pub(crate) io: Io,
    /// `None` if the user has no right to ask for it.
    pub(crate) identity: Option<Identity>,
}

/// Identifies one connection to the server.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The server's name for itself, a new one with each start.
    run: String,
    /// The server's number for the connection. Numbers begin anew with each start.
    number: i64,
}

pub(crate) type Io = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An event that a connection reports by itself.
#[derive(Debug)]
pub(crate) struct Push {
    /// Which connection of the pool, and which one in a row.
    pub(crate) connection: usize,
    pub(crate) generation: u64,
    pub(crate) event: PushEvent,
}

#[derive(Debug)]
pub(crate) enum PushEvent {
    Message(Vec<u8>),
    Disconnected,
}

/// The way to the server.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    info: ConnectionInfo,
    timeout: Duration,
    pushes: mpsc::UnboundedSender<Push>,
}

impl Dialer {
    pub(crate) fn new(
        info: &ConnectionInfo,
        timeout: Duration,
        pushes: mpsc::UnboundedSender<Push>,
    ) -> RedisResult<Self> {
        let settings = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP3)
            .set_skip_set_lib_name();
        stream::check(info.addr())?;
        Ok(Self {
            info: info.clone().set_redis_settings(settings),
            timeout,
            pushes,
        })
    }

    /// Opens a connection that gets its grants on `names.channel`; ends `old`, its
    /// predecessor, if the server allows that.
    pub(crate) async fn open(
        self,
        names: &KeyNames,
        connection: usize,
        generation: u64,
        old: Option<Identity>,
    ) -> RedisResult<Opened> {
        let timeout = self.timeout;
        let opening = self.open_unbounded(names, connection, generation, old);
        match tokio::time::timeout(timeout, opening).await {
            Ok(result) => result,
            Err(_) => Err(io::Error::other("the server did not answer in time").into()),
        }
    }

    async fn open_unbounded(
        self,
        names: &KeyNames,
        number: usize,
        generation: u64,
        old: Option<Identity>,
    ) -> RedisResult<Opened> {
        let pushes = self.pushes;
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_connection_timeout(None)
            .set_pipeline_buffer_size(PIPELINES)
            .set_push_sender(move |push: PushInfo| match event(push) {
                Some(event) => pushes.send(Push {
                    connection: number,
                    generation,
                    event,
                }),
                None => Ok(()),
            });
        let stream = stream::open(self.info.addr()).await?;
        let settings = self.info.redis_settings();
        let (mut connection, io) =
            MultiplexedConnection::new_with_config(settings, stream, config).await?;
        let mut io: Io = Box::pin(io);
        let identity = tokio::select! {
            identity = prepare(&mut connection, names, old) => identity?,
            () = &mut io => return Err(closed()),
        };
        Ok(Opened {
            connection,
            io,
            identity,
        })
    }
}

/// Does what must be done before the first acquire; returns the identity of the
/// connection, if the user has the right to ask for it.
async fn prepare(
    connection: &mut MultiplexedConnection,
    names: &KeyNames,
    old: Option<Identity>,
) -> RedisResult<Option<Identity>> {
    let channels = [&*names.channel, &*names.common];
    connection.subscribe(&channels).await?;

    let mut first = redis::pipe();
    first.cmd("CLIENT").arg("ID");
    first.cmd("INFO").arg("server");
    for script in scripts::LOADED {
        first.add_command(script.load());
    }
    first.cmd("PUBLISH").arg(&*names.channel).arg("");
    let mut raise = scripts::OPEN.call(true);
    raise.arg(1).arg(&*names.fence);
    first.add_command(raise);

    let count = first.len();
    let mut answers = connection.send_packed_commands(&first, 0, count).await?;
    answers.pop().unwrap_or(Value::Nil).extract_error()?;
    if answers.pop().unwrap_or(Value::Nil).extract_error()? == Value::Int(0) {
        return Err(io::Error::other("the server does not deliver messages").into());
    }
    // The others are refused if the user has no right to them, and are not needed.
    let ours = match &answers[..] {
        [Value::Int(number), info, ..] => run(info).map(|run| Identity {
            run,
            number: *number,
        }),
        _ => None,
    };
    // After a restart, the old number may be a stranger's.
    if let (Some(old), Some(ours)) = (old, &ours)
        && old.run == ours.run
    {
        let mut close = redis::pipe();
        close.cmd("CLIENT").arg("KILL").arg("ID").arg(old.number);
        // It may have ended already, or we have no right to.
        connection.send_packed_commands(&close, 0, 1).await?;
    }
    Ok(ours)
}

/// The server's name in what it tells of itself.
fn run(info: &Value) -> Option<String> {
    let text = match info {
        Value::VerbatimString { text, .. } => text,
        Value::BulkString(text) => std::str::from_utf8(text).ok()?,
        _ => return None,
    };
    let run = text.lines().find_map(|line| line.strip_prefix("run_id:"));
    run.map(ToOwned::to_owned)
}

fn event(push: PushInfo) -> Option<PushEvent> {
    match push.kind {
        PushKind::Message => match push.data.into_iter().nth(1) {
            Some(Value::BulkString(message)) => Some(PushEvent::Message(message)),
            _ => None,
        },
        PushKind::Disconnection => Some(PushEvent::Disconnected),
        _ => None,
    }
}

/// For a connection that ended without an error of its own.
pub(crate) fn closed() -> RedisError {
    io::Error::other("the server closed the connection").into()
}

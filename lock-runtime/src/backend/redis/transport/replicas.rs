//! Asks replicas whether they have what the server has said. This has a connection of its
//! own, since the server answers nothing else on it meanwhile.

use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Pipeline, RedisConnectionInfo, RedisResult, Value};

use super::stream::Route;
use super::wire::{Answers, Io, Wire};
use crate::backend::redis::protocol::call::KeyNames;
use crate::backend::redis::protocol::reply::{Trouble, number};
use crate::base::clock::Moment;

/// How long the key lives that is written for each question.
const MARK_TTL: Duration = Duration::from_secs(60);
/// How long replicas may take when the first connection opens.
const PROOF: Duration = Duration::from_millis(300);
/// How much longer than the replicas the server may take.
const SLACK: Duration = Duration::from_millis(500);

/// The replicas of the server that a link is connected to.
pub(super) struct Replicas {
    wire: Wire,
    needed: usize,
    asked: Option<(Answers, Moment)>,
}

impl Replicas {
    pub(super) fn new(wire: Wire, needed: usize) -> Self {
        Self {
            wire,
            needed,
            asked: None,
        }
    }

    /// Writes what was sent and reads what has come in.
    pub(super) fn poll_io(&mut self, cx: &mut Context<'_>) {
        self.wire.poll(cx);
    }

    /// Asks whether enough of them have everything that the server has said before. One
    /// question is open at a time.
    pub(super) fn ask(&mut self, now: Moment, names: &KeyNames, time: Duration) {
        let question = question(names, self.needed, time);
        let answers = self.wire.send(question, 0);
        self.asked = Some((answers, now.after(time + SLACK)));
    }

    /// The answer, if it has arrived.
    pub(super) fn answer(&mut self) -> Option<Result<(), Trouble>> {
        let (answers, _) = self.asked.as_mut()?;
        let answer = Wire::answered(answers)?;
        self.asked = None;
        Some(match answer {
            Ok(values) => enough(&values, self.needed),
            Err(error) => Err(Trouble::Unknown(Arc::new(error))),
        })
    }

    /// When the connection counts as broken if there is no answer.
    pub(super) fn silent_at(&self) -> Option<Moment> {
        self.asked.as_ref().map(|(_, at)| *at)
    }
}

/// Opens the connection.
pub(super) async fn open(
    route: &Route,
    login: &RedisConnectionInfo,
) -> RedisResult<(MultiplexedConnection, Io)> {
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_connection_timeout(None);
    let stream = route.open().await?;
    let (connection, io) = MultiplexedConnection::new_with_config(login, stream, config).await?;
    Ok((connection, Box::pin(io)))
}

/// Fails if there are too few replicas, or the user may not ask for them.
pub(super) async fn prove(
    (connection, io): &mut (MultiplexedConnection, Io),
    names: &KeyNames,
    needed: usize,
) -> Result<(), Trouble> {
    let question = question(names, needed, PROOF);
    let count = question.len();
    let answer = tokio::select! {
        answer = connection.send_packed_commands(&question, 0, count) => answer,
        () = io => return Err(Trouble::said("the server closed the connection")),
    };
    let values = answer.map_err(|error| Trouble::NotNow(Arc::new(error)))?;
    enough(&values, needed)
}

/// A write, and how many replicas have it in time. Having it, they have everything before
/// it; without a write they might be asked about an older one. The key is written without
/// new memory once it is there, as a renewal is.
fn question(names: &KeyNames, needed: usize, time: Duration) -> Pipeline {
    let ttl = u64::try_from(MARK_TTL.as_millis()).unwrap_or(u64::MAX);
    let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
    let mut pipeline = redis::pipe();
    let mark = &*names.mark;
    pipeline
        .cmd("SET")
        .arg(mark)
        .arg("")
        .arg("NX")
        .arg("PX")
        .arg(ttl);
    pipeline.cmd("PEXPIRE").arg(mark).arg(ttl);
    pipeline.cmd("WAIT").arg(needed).arg(time);
    pipeline
}

/// Reads the answers to a [`question`].
fn enough(values: &[Value], needed: usize) -> Result<(), Trouble> {
    let refused = |value: &Value| match value {
        Value::ServerError(error) => Some(Trouble::from_server(error)),
        _ => None,
    };
    let [set, expire, count] = values else {
        return Err(Trouble::said("the answer of the replicas does not match"));
    };
    if let Some(trouble) = refused(expire).or_else(|| refused(count)) {
        return Err(trouble);
    }
    if *expire != Value::Int(1) {
        let missing = || Trouble::said("the key that replicas are to have was evicted");
        return Err(refused(set).unwrap_or_else(missing));
    }
    match number(count).and_then(|it| usize::try_from(it).ok()) {
        Some(count) if count >= needed => Ok(()),
        Some(count) => Err(Trouble::said(&format!(
            "{count} of its replicas have the latest writes, and `replicas` asks for {needed}: see whether they run \
             and keep up, or ask for fewer"
        ))),
        None => Err(Trouble::said("the answer of the replicas does not match")),
    }
}

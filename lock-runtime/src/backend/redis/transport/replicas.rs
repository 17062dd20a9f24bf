//! Asks replicas whether they have what the server has said. This has a connection of its
//! own, since the server answers nothing else on it meanwhile.

use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Pipeline, Value};

use super::wire::{Answers, Wire};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::opening::Io;
use crate::backend::redis::protocol::reply::number;
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
    in_cluster: bool,
    asked: Option<(Answers, Moment)>,
}

impl Replicas {
    pub(super) fn new(wire: Wire, needed: usize, in_cluster: bool) -> Self {
        Self {
            wire,
            needed,
            in_cluster,
            asked: None,
        }
    }

    pub(super) fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Writes what was sent and reads what has come in.
    pub(super) fn poll_io(&mut self, cx: &mut Context<'_>) {
        self.wire.poll(cx);
    }

    /// Asks whether enough of them have everything that the server has said before. One
    /// question is open at a time.
    pub(super) fn ask(&mut self, now: Moment, mark: &str, time: Duration) {
        let question = question(mark, self.needed, time, self.in_cluster);
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

/// Fails if there are too few replicas, or the user may not ask for them.
pub(super) async fn prove(
    (connection, io): &mut (MultiplexedConnection, Io),
    needed: usize,
) -> Result<(), Trouble> {
    let mut question = redis::pipe();
    wait(&mut question, needed, PROOF);
    let answer = tokio::select! {
        answer = connection.send_packed_commands(&question, 0, 1) => answer,
        () = io => return Err(Trouble::not_now("the server closed the connection")),
    };
    let values = answer.map_err(|error| Trouble::NotNow(Arc::new(error)))?;
    count(values.first(), needed)
}

/// A write, and how many replicas have it in time. Having it, they have everything before
/// it; without a write they might be asked about an older one. The key is written without
/// new memory once it is there, as a renewal is. The first slot of a node may be on its way
/// there; then it takes only what is asked for so.
fn question(mark: &str, needed: usize, time: Duration, in_cluster: bool) -> Pipeline {
    let ttl = u64::try_from(MARK_TTL.as_millis()).unwrap_or(u64::MAX);
    let (mut set, mut expire) = (redis::cmd("SET"), redis::cmd("PEXPIRE"));
    set.arg((mark, "", "NX", "PX", ttl));
    expire.arg((mark, ttl));
    let mut pipeline = redis::pipe();
    for write in [set, expire] {
        if in_cluster {
            pipeline.cmd("ASKING");
        }
        pipeline.add_command(write);
    }
    wait(&mut pipeline, needed, time);
    pipeline
}

fn wait(pipeline: &mut Pipeline, needed: usize, time: Duration) {
    // None at all would mean without end.
    let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
    pipeline.cmd("WAIT").arg(needed).arg(time);
}

/// Reads the answers to a [`question`].
fn enough(values: &[Value], needed: usize) -> Result<(), Trouble> {
    let ([set, expire, waited] | [_, set, _, expire, waited]) = values else {
        return Err(Trouble::not_now(
            "the answer of the replicas does not match",
        ));
    };
    refused(expire)?;
    if *expire != Value::Int(1) {
        refused(set)?;
        return Err(Trouble::not_now(
            "the key that replicas are to have was evicted",
        ));
    }
    count(Some(waited), needed)
}

/// Reads the answer to `WAIT`.
fn count(waited: Option<&Value>, needed: usize) -> Result<(), Trouble> {
    let waited = waited.unwrap_or(&Value::Nil);
    refused(waited)?;
    match number(waited).and_then(|it| usize::try_from(it).ok()) {
        Some(count) if count >= needed => Ok(()),
        Some(count) => Err(Trouble::not_now(&format!(
            "{count} of its replicas have the latest writes, and `replicas` asks for {needed}: see whether they run \
             and keep up, or ask for fewer"
        ))),
        None => Err(Trouble::not_now(
            "the answer of the replicas does not match",
        )),
    }
}

fn refused(value: &Value) -> Result<(), Trouble> {
    match value {
        Value::ServerError(error) => Err(match Trouble::from_server(error) {
            // That is where the key is, and not the lock.
            trouble if trouble.redirect().is_some() => {
                Trouble::not_now(&trouble.cause().to_string())
            }
            trouble => trouble,
        }),
        _ => Ok(()),
    }
}

//! Answers queries: asks one server, step by step, and reads what it says.

mod asking;
mod diagnosis;
#[cfg(fuzzing)]
pub(super) mod fuzzing;
mod history;
mod overview;
mod parts;
mod scan;
mod status;

use std::future::Future;
use std::time::{Duration, SystemTime};

use redis::{FromRedisValue as _, Value};

use super::protocol::inspection::{Fact, Inspect};
use super::protocol::names::Layout;
use super::protocol::reply::{number, text};
use crate::backend::name;
use crate::backend::queries::Asker;
use crate::backend::queue::protocol::step;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::base::clock::Clock;
use crate::types::error::Cause;
use crate::types::fence::FencingToken;
use crate::types::holder::Holder;
use crate::types::key::LockKey;

pub(super) use parts::{Parts, together};

/// A server, asked over one of its connections by way of the backend.
#[derive(Debug)]
pub(super) struct Server<C> {
    pub(super) asker: Asker<Asked<C>>,
    pub(super) connection: C,
    pub(super) layout: Layout,
    pub(super) clock: Clock,
}

const CLUSTER_INFO: &[&str] = &["CLUSTER", "INFO"];

/// A step, and the connection that it goes over.
pub(super) type Asked<C> = step::Asked<Inspect, C>;

impl<C: Copy> Server<C> {
    fn ask(&self, step: Inspect) -> impl Future<Output = Result<Value, Trouble>> {
        step::ask(&self.asker, self.connection, step)
    }

    pub(super) async fn force_release(self, key: LockKey) -> Result<usize, Cause> {
        let count = self.ask(Inspect::ForceRelease(key)).await?;
        let count = number(&count).and_then(|it| usize::try_from(it).ok());
        count.ok_or_else(mismatch)
    }

    /// Whether a node of a cluster serves locks, as far as its user may ask.
    pub(super) async fn serves(self) -> bool {
        let state = self.ask(Inspect::Fact(Fact::Useful(CLUSTER_INFO))).await;
        let state = state.ok().map(String::from_redis_value);
        let fails = |it: String| it.contains("cluster_state:fail");
        !state.is_some_and(|it| it.is_ok_and(fails))
    }

    /// How long a message of the connection to itself takes.
    pub(super) async fn echo(self) -> Result<Duration, Cause> {
        let asked = self.clock.now();
        match self.ask(Inspect::Echo).await? {
            Value::Int(1..) => Ok(self.clock.now().since(asked)),
            _ => Err(mismatch()),
        }
    }
}

fn mismatch() -> Cause {
    Trouble::not_now("the reply did not match its request").cause()
}

/// A holder from its name, the ms left of its lease, and what is known of its grant: the fencing
/// token and the us since.
fn holder(facts: &[Value]) -> Option<Holder> {
    let [name, left, granted] = facts else {
        return None;
    };
    let mut holder = name::holder(&text(name)?, lease(left)?);
    if !holder.cooling_down && !holder.ticket {
        let granted = text(granted)?;
        if let Some((fence, held)) = granted.split_once(' ') {
            let held = Duration::from_micros(held.parse().ok()?);
            holder.since = SystemTime::now().checked_sub(held);
            holder.fencing_token = Some(FencingToken::new(fence.parse().ok()?));
        }
    }
    Some(holder)
}

/// The rest of a lease; `Some(None)` for one without an end.
#[expect(
    clippy::option_option,
    reason = "the outer one says that the reply is odd"
)]
fn lease(left: &Value) -> Option<Option<Duration>> {
    match left {
        Value::Int(-1) => Some(None),
        Value::Int(left) => Some(Some(Duration::from_millis(
            u64::try_from(*left).unwrap_or(0),
        ))),
        _ => None,
    }
}

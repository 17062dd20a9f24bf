//! Whether a server may have forgotten locks, as it may after a restart, and as a replica
//! may that has become the master; and for how long nothing must be granted then.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, Value, from_redis_value};

use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::opening::Io;
use crate::backend::redis::protocol::names::KeyNames;
use crate::backend::redis::protocol::reply::{slot, text};
use crate::backend::redis::protocol::scripts;

/// How long a master that is cut off from its replicas goes on, if it does not tell: the
/// default of servers.
const MAX_LAG: Duration = Duration::from_secs(10);

/// The facts that may change while a connection is open: a server that was a replica for a while
/// has the data of another one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Standing {
    Replica,
    Master {
        /// The name of the data since the server took over, if it has.
        promotion: Option<Box<str>>,
    },
}

impl Standing {
    /// The command that [`has_changed`](Self::has_changed) reads the answer to.
    pub(super) fn question() -> Cmd {
        let mut info = redis::cmd("INFO");
        info.arg("replication");
        info
    }

    /// Whether the server, as it describes itself behind its other answers, may have
    /// forgotten something since. A replica refuses what would grant a lock, and it does not
    /// matter then whether it has; if it did not refuse, it was a master for a moment.
    pub(super) fn has_changed(&self, answer: &Value, refused: bool) -> bool {
        match info(answer).as_deref().map(Self::read) {
            Ok(Self::Replica) => !refused,
            // A history without promotions may be renamed.
            Ok(Self::Master { promotion: None }) => *self == Self::Replica,
            Ok(now) => now != *self,
            Err(_) => true,
        }
    }

    fn read(replication: &str) -> Self {
        if field(replication, "role") != Some("master") {
            return Self::Replica;
        }
        let before = field(replication, "master_replid2").unwrap_or_default();
        let promoted = before.contains(|c| c != '0');
        let promotion = field(replication, "master_replid").filter(|_| promoted);
        Self::Master {
            promotion: promotion.map(Into::into),
        }
    }
}

/// The facts that a server reports of itself.
struct Origin {
    run: String,
    uptime: Duration,
    standing: Standing,
    max_lag: Duration,
}

impl Origin {
    /// The name of all that it knows for sure: another one after each start and each time
    /// it has taken over.
    fn name(&self) -> (String, bool) {
        match &self.standing {
            Standing::Master {
                promotion: Some(promotion),
            } => (format!("{}{promotion}", self.run), true),
            _ => (self.run.clone(), false),
        }
    }
}

/// The role of a server, and for how long it must not grant anything, if no lease is longer
/// than `longest`.
pub(super) async fn left(
    (connection, io): (&mut MultiplexedConnection, &mut Io),
    names: &KeyNames,
    longest: Duration,
) -> Result<(Standing, Option<Duration>), Trouble> {
    let asking = async {
        let origin = origin(connection).await?;
        let left = match (&origin.standing, names.node()) {
            (Standing::Replica, None) => return Err(Trouble::not_now("the server is a replica")),
            // It sends everybody to its master.
            (Standing::Replica, Some(_)) => None,
            (_, None) => note(connection, names, &names.run, &origin, longest).await?,
            (_, Some(node)) => note_at_node(connection, names, node, &origin, longest).await?,
        };
        Ok((origin.standing, left))
    };
    tokio::select! {
        left = asking => left,
        () = io => Err(Trouble::not_now("the server closed the connection")),
    }
}

async fn origin(connection: &mut MultiplexedConnection) -> Result<Origin, Trouble> {
    let mut question = redis::pipe();
    question.cmd("INFO").arg("server");
    question.add_command(Standing::question());
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
    let uptime: Option<i64> = field(&server, "uptime_in_seconds").and_then(|it| it.parse().ok());
    let lag: Option<(String, u64)> = from_redis_value(lag.clone()).ok();
    Ok(Origin {
        run: field(&server, "run_id").ok_or_else(mismatch)?.to_owned(),
        uptime: uptime.map(self::uptime).ok_or_else(mismatch)?,
        standing: Standing::read(&replication),
        max_lag: lag.map_or(MAX_LAG, |(_, seconds)| Duration::from_secs(seconds)),
    })
}

/// Notes the origin of a node of a cluster in the first and the last of its slots. One that has
/// moved elsewhere took its note along; while one moves, it cannot be written.
async fn note_at_node(
    connection: &mut MultiplexedConnection,
    names: &KeyNames,
    node: &str,
    origin: &Origin,
    longest: Duration,
) -> Result<Option<Duration>, Trouble> {
    // The slots that a node without any gets bring their locks along.
    let Some([first, last]) = outer_slots(connection, node).await? else {
        return Ok(None);
    };
    let key = names.run_of_node(last);
    let in_last = note(connection, names, &key, origin, longest).await;
    let key = names.run_of_node(first);
    let in_first = note(connection, names, &key, origin, longest).await;
    match (in_last, in_first) {
        // A server that may have forgotten something is new to both.
        (Ok(one), Ok(other)) => Ok(one.min(other)),
        (Ok(left), Err(_)) | (Err(_), Ok(left)) => Ok(left),
        (Err(trouble), Err(_)) => Err(trouble),
    }
}

/// The first and the last of the slots that a node of a cluster serves: those that move
/// elsewhere are most often its first ones.
async fn outer_slots(
    connection: &mut MultiplexedConnection,
    node: &str,
) -> Result<Option<[u16; 2]>, Trouble> {
    let mut question = redis::cmd("CLUSTER");
    let answer = question.arg("SLOTS").query_async(connection).await;
    outer_slots_in(&answer.map_err(broken)?, node)
}

pub(in crate::backend::redis) fn outer_slots_in(
    answer: &Value,
    node: &str,
) -> Result<Option<[u16; 2]>, Trouble> {
    let Value::Array(ranges) = answer else {
        return Err(mismatch());
    };
    let own = |range: &Value| {
        let Value::Array(parts) = range else {
            return None;
        };
        let [first, last, Value::Array(master), ..] = &**parts else {
            return None;
        };
        let is_own = text(master.get(2)?)? == node;
        let slots = [slot(first)?, slot(last)?];
        is_own.then_some(slots)
    };
    let own = ranges.iter().filter_map(own);
    Ok(own.reduce(|[first, last], [a, b]| [first.min(a), last.max(b)]))
}

/// How long a server has run at the least that says so many seconds: it subtracts the second
/// in which it started, and may have started at the end of that one. It says less than none
/// where its clock went back past its start.
fn uptime(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds.saturating_sub(1)).unwrap_or(0))
}

/// Notes the origin with the data. A lease that was granted before the server started, or
/// before another origin was noticed, has ended then.
async fn note(
    connection: &mut MultiplexedConnection,
    names: &KeyNames,
    key: &str,
    origin: &Origin,
    longest: Duration,
) -> Result<Option<Duration>, Trouble> {
    let (name, promoted) = origin.name();
    let mut call = scripts::QUARANTINE.call(true);
    call.arg(1).arg(key).arg(name).arg(u8::from(promoted));
    let noted: Result<(u64, u64), _> = call.query_async(connection).await;
    let (now, noticed) = noted.map_err(|error| Trouble::from_connecting(error, names))?;
    let since_noticed = Duration::from_millis(now.saturating_sub(noticed));
    Ok(origin.left(longest, (noticed > 0).then_some(since_noticed)))
}

impl Origin {
    /// For how long nothing must be granted yet, if another run was noticed so long ago.
    fn left(&self, longest: Duration, since_noticed: Option<Duration>) -> Option<Duration> {
        let after_start = longest.checked_sub(self.uptime);
        let lasts = longest.saturating_add(self.max_lag);
        let after_change = since_noticed.and_then(|it| lasts.checked_sub(it));
        let left = after_start.max(after_change);
        left.filter(|left| !left.is_zero())
    }
}

fn info(answer: &Value) -> Result<String, Trouble> {
    match answer {
        Value::VerbatimString { text, .. } => Ok(text.clone()),
        Value::ServerError(error) => Err(Trouble::never(&format!(
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
    Trouble::not_now("the server tells too little of itself for `quarantine`")
}

fn broken(error: RedisError) -> Trouble {
    Trouble::NotNow(Arc::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn master(name: &str, before: &str) -> Value {
        let text = format!("role:master\r\nmaster_replid:{name}\r\nmaster_replid2:{before}\r\n");
        Value::BulkString(text.into())
    }

    #[test]
    fn slots_that_no_cluster_has_are_passed_over() {
        let range = |slots: [i64; 2]| {
            let [first, last] = slots.map(Value::Int);
            let words = ["127.0.0.1", "7000", "node"].map(|it| Value::BulkString(it.into()));
            Value::Array(vec![first, last, Value::Array(words.into())])
        };
        let outer = |ranges: &[[i64; 2]]| {
            let ranges = ranges.iter().copied().map(range).collect();
            outer_slots_in(&Value::Array(ranges), "node").expect("an answer")
        };
        assert_eq!(outer(&[[7, 9], [0, 5]]), Some([0, 9]));
        assert_eq!(outer(&[[0, 65535], [7, 16384]]), None);
    }

    fn standing(answer: &Value) -> Standing {
        Standing::read(&info(answer).expect("text"))
    }

    // Section: guarantees.md#when-a-replica-takes-over
    #[test]
    fn a_master_that_has_taken_over_since_may_have_forgotten_something() {
        let first = master("a1", "0000");
        let (promoted, again) = (master("b2", "a1"), master("c3", "b2"));
        let replica = Value::BulkString("role:slave\r\nmaster_replid:b2\r\n".into());
        for (before, now, changed) in [
            (&first, &first, false),
            (&first, &promoted, true),
            (&promoted, &promoted, false),
            (&promoted, &again, true),
            (&first, &replica, false),
            (&replica, &replica, false),
            (&replica, &promoted, true),
            // A history is renamed when its first replica comes, and when its last has gone.
            (&first, &master("d4", "0000"), false),
            (&promoted, &master("d4", "0000"), false),
            (&first, &Value::Nil, true),
        ] {
            for refused in [true, false] {
                // A replica that has granted something was a master just now.
                let changed = changed || *now == replica && !refused;
                assert_eq!(
                    standing(before).has_changed(now, refused),
                    changed,
                    "{before:?} {now:?}, refused: {refused}"
                );
            }
        }
    }

    #[test]
    fn a_server_that_says_one_second_may_have_started_just_now() {
        let longest = Duration::from_millis(1_500);
        assert_eq!(origin(1, MAX_LAG).left(longest, None), Some(longest));
    }

    #[test]
    fn a_lag_without_end_is_read() {
        let server = origin(100, Duration::MAX);
        let left = server.left(Duration::from_secs(10), Some(Duration::ZERO));
        assert_eq!(left, Some(Duration::MAX));
    }

    fn origin(seconds: i64, max_lag: Duration) -> Origin {
        Origin {
            run: "run".into(),
            uptime: uptime(seconds),
            standing: Standing::Master { promotion: None },
            max_lag,
        }
    }
}

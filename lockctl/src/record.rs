//! What `--json` writes. The names of the fields stay as they are.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use lock_runtime::inspect::{self, Kind};
use lock_runtime::{FencingToken, LockKey};
use serde::Serialize;

/// A holder of a lock.
#[derive(Debug, Serialize)]
pub(crate) struct Holder<'a> {
    id: &'a str,
    process: Option<u32>,
    host: Option<&'a str>,
    function: Option<&'a str>,
    since: Option<String>,
    held_ms: Option<u64>,
    may_have_waited: bool,
    fence: Option<FencingToken>,
    left_ms: Option<u64>,
    cooling_down: bool,
    ticket: bool,
    answers: Option<bool>,
    permits: u32,
}

impl<'a> From<&'a inspect::Holder> for Holder<'a> {
    fn from(it: &'a inspect::Holder) -> Self {
        let held = it.since.and_then(|since| since.elapsed().ok());
        Self {
            id: &it.id,
            process: it.process,
            host: it.host.as_deref(),
            function: it.function.as_deref(),
            since: it.since.map(timestamp),
            held_ms: held.map(millis),
            may_have_waited: it.may_have_waited,
            fence: it.fencing_token,
            left_ms: it.remaining.map(millis),
            cooling_down: it.cooling_down,
            ticket: it.ticket,
            answers: it.answers,
            permits: it.permits,
        }
    }
}

/// A grant that the store remembers.
#[derive(Debug, Serialize)]
pub(crate) struct Grant<'a> {
    key: &'a LockKey,
    id: &'a str,
    process: Option<u32>,
    host: Option<&'a str>,
    function: Option<&'a str>,
    kind: Kind,
    fence: FencingToken,
    since: String,
    until: Option<String>,
    held_ms: Option<u64>,
    end: Option<inspect::GrantEnd>,
}

impl<'a> Grant<'a> {
    pub(crate) fn of(key: &'a LockKey, it: &'a inspect::Grant) -> Self {
        Self {
            key,
            id: &it.id,
            process: it.process,
            host: it.host.as_deref(),
            function: it.function.as_deref(),
            kind: it.kind,
            fence: it.fencing_token,
            since: timestamp(it.since),
            until: it.until.map(timestamp),
            held_ms: it.duration().map(millis),
            end: it.end,
        }
    }
}

/// A waiter, and its position in the queue.
#[derive(Debug, Serialize)]
pub(crate) struct Waiter<'a> {
    position: usize,
    #[serde(flatten)]
    waiter: &'a inspect::Waiter,
}

/// What `status` answers.
#[derive(Debug, Serialize)]
pub(crate) struct Status<'a> {
    key: &'a LockKey,
    state: &'static str,
    kind: Option<Kind>,
    holders: Vec<Holder<'a>>,
    waiters: usize,
    queue: Vec<Waiter<'a>>,
}

impl<'a> From<&'a inspect::Status> for Status<'a> {
    fn from(it: &'a inspect::Status) -> Self {
        let queue = it.waiters.iter().enumerate();
        Self {
            key: &it.key,
            state: state(it.is_held(), it.is_cooling_down()),
            kind: it.kind,
            holders: it.holders.iter().map(Into::into).collect(),
            waiters: it.waiting,
            queue: queue
                .map(|(at, waiter)| Waiter {
                    position: at + 1,
                    waiter,
                })
                .collect(),
        }
    }
}

/// One lock in a list.
#[derive(Debug, Serialize)]
pub(crate) struct Lock<'a> {
    key: &'a LockKey,
    state: &'static str,
    kind: Option<Kind>,
    held_by: usize,
    holders: Vec<Holder<'a>>,
    waiters: usize,
    longest_wait_ms: Option<u64>,
}

impl<'a> From<&'a inspect::Summary> for Lock<'a> {
    fn from(it: &'a inspect::Summary) -> Self {
        let held = it.holders.iter().any(|holder| !holder.cooling_down);
        Self {
            key: &it.key,
            state: state(held, !held && it.held_by > 0),
            kind: it.kind,
            held_by: it.held_by,
            holders: it.holders.iter().map(Into::into).collect(),
            waiters: it.waiting,
            longest_wait_ms: it.longest_wait.map(millis),
        }
    }
}

/// A holder that waits for another lock.
#[derive(Debug, Serialize)]
pub(crate) struct Edge<'a> {
    holds: &'a LockKey,
    waits_for: &'a LockKey,
    /// The number of a cycle that it is in.
    cycle: Option<usize>,
    /// Whether it certainly holds the first lock.
    sure: bool,
    holder: Holder<'a>,
    waiter: &'a inspect::Waiter,
}

impl<'a> Edge<'a> {
    pub(crate) fn new(it: &'a inspect::Edge, sure: bool, cycle: Option<usize>) -> Self {
        Self {
            holds: &it.holds,
            waits_for: &it.waits_for,
            cycle,
            sure,
            holder: (&it.holder).into(),
            waiter: &it.waiter,
        }
    }
}

/// What `release` has done.
#[derive(Debug, Serialize)]
pub(crate) struct Release<'a> {
    pub(crate) key: &'a LockKey,
    pub(crate) released: usize,
    pub(crate) holders: Vec<Holder<'a>>,
    pub(crate) waiters: usize,
}

/// What `release --ask` has done.
#[derive(Debug, Serialize)]
pub(crate) struct Asking<'a> {
    pub(crate) key: &'a LockKey,
    /// How many holders have heard of it.
    pub(crate) asked: usize,
    pub(crate) holders: Vec<Holder<'a>>,
    pub(crate) waiters: usize,
}

/// What a user of the page has revoked.
#[derive(Debug, Serialize)]
pub(crate) struct Revoked<'a> {
    pub(crate) at: String,
    pub(crate) event: &'static str,
    #[serde(flatten)]
    pub(crate) release: Release<'a>,
}

/// What `watch` has seen.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Happening<'a> {
    pub(crate) at: Option<String>,
    pub(crate) event: &'a str,
    pub(crate) key: Option<&'a LockKey>,
    pub(crate) holder: Option<Holder<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<usize>,
}

impl<'a> Happening<'a> {
    pub(crate) fn of(event: &'a str) -> Self {
        Self {
            event,
            ..Self::default()
        }
    }
}

/// Where `serve` listens.
#[derive(Debug, Serialize)]
pub(crate) struct Serving<'a> {
    pub(crate) url: &'a str,
}

/// What `bench` has measured.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) measure: &'static str,
    pub(crate) count: usize,
    pub(crate) median_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) max_us: u64,
}

/// What happens to the lock of `run`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Occurrence<'a> {
    pub(crate) event: &'static str,
    pub(crate) key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fence: Option<FencingToken>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) holder: Option<Holder<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waited_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<&'static str>,
}

/// A server of a cluster that did not answer, and why.
#[derive(Debug, Serialize)]
pub(crate) struct Unanswered<'a> {
    pub(crate) unanswered: &'a str,
}

/// Why a command failed.
#[derive(Debug, Serialize)]
pub(crate) struct Failure<'a> {
    pub(crate) kind: &'a str,
    pub(crate) error: &'a str,
}

fn state(held: bool, cooling_down: bool) -> &'static str {
    match (held, cooling_down) {
        (true, _) => "held",
        (false, true) => "cooldown",
        (false, false) => "free",
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A moment, as RFC 3339 writes it.
pub(crate) fn timestamp(at: SystemTime) -> String {
    let at = Timestamp::try_from(at).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{at:.3}")
}

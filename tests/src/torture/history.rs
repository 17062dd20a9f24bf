//! What happened in a tortured run.

use std::{
    fmt, io,
    num::ParseIntError,
    path::Path,
    str::FromStr,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

pub(super) use crate::log::monotonic;
use crate::log::{self, Log};

/// Where one process writes its events.
#[derive(Debug)]
pub(super) struct History {
    log: Log,
    grants: AtomicU32,
}

/// What a worker did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A lock was asked for. Noted beforehand where libraries are compared, else only if it was granted later.
    Asked,
    /// It was not granted.
    Refused,
    /// Its lease is not to be longer than one ttl, from a moment before this one.
    Fixed,
    /// The first poll of a body began after this moment, and ended before `until`.
    Enter,
    /// A later poll of a body did.
    Poll,
    /// The same, when the local deadline had passed: never.
    Late,
    /// The body ended by itself.
    Done,
    /// A ticket has taken the place of the guard.
    Issued,
    /// The caller learnt that the lock was lost.
    Lost,
    /// The same, of a lease that was not to be longer.
    Expired,
    /// The fenced register took a write.
    Accepted,
    /// The fenced register refused a write.
    Stale,
}

const KINDS: [(Kind, &str); 12] = [
    (Kind::Asked, "asked"),
    (Kind::Refused, "refused"),
    (Kind::Fixed, "fixed"),
    (Kind::Enter, "enter"),
    (Kind::Poll, "poll"),
    (Kind::Late, "late"),
    (Kind::Done, "done"),
    (Kind::Issued, "issued"),
    (Kind::Lost, "lost"),
    (Kind::Expired, "expired"),
    (Kind::Accepted, "accepted"),
    (Kind::Stale, "stale"),
];

/// Beside whom a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Mode {
    /// Beside nobody.
    Alone,
    /// Beside other readers.
    Read,
    /// Beside others, so many at once.
    Permits(u32),
}

impl Mode {
    /// Whether two may hold the lock at once, if others do not make them too many.
    pub(super) fn shares_with(self, other: Self) -> bool {
        self == other && self != Self::Alone
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone => f.write_str("x"),
            Self::Read => f.write_str("r"),
            Self::Permits(most) => write!(f, "p{most}"),
        }
    }
}

impl FromStr for Mode {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "x" => Self::Alone,
            "r" => Self::Read,
            permits => Self::Permits(permits.trim_start_matches('p').parse()?),
        })
    }
}

/// One time that a lock was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Grant {
    /// The number of the lock.
    pub(super) key: usize,
    /// Usually one of its own; a server that has forgotten grants may give it again.
    pub(super) fence: u64,
    pub(super) mode: Mode,
    pub(super) process: u32,
    number: u32,
}

impl Grant {
    /// Identifies it, also before it is granted.
    pub(super) fn id(&self) -> (u32, u32) {
        (self.process, self.number)
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            fence,
            mode,
            process,
            number,
            ..
        } = self;
        write!(
            f,
            "grant {number} of process {process} ({mode}, fence {fence})"
        )
    }
}

/// One line of a history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    /// `CLOCK_MONOTONIC`, the same in all processes.
    pub(super) at: Duration,
    /// When a poll had ended; else the same.
    pub(super) until: Duration,
    /// For a poll, the local deadline that was known before it, if the library tells.
    pub(super) deadline: Option<Duration>,
    /// What happened.
    pub(super) kind: Kind,
    /// Under which grant.
    pub(super) grant: Grant,
}

impl History {
    /// Appends to the file of this process in `directory`.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let log = Log::open(directory)?;
        let grants = AtomicU32::new(0);
        Ok(Self { log, grants })
    }

    /// The name of the file of a process.
    pub(super) fn file(process: u32) -> String {
        Log::file(process)
    }

    /// A grant to this process.
    pub(super) fn grant(&self, key: usize, fence: u64, mode: Mode) -> Grant {
        Grant {
            key,
            fence,
            mode,
            process: std::process::id(),
            number: self.grants.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Notes an event of this moment.
    pub(super) fn note(&self, kind: Kind, grant: Grant) {
        self.note_at(monotonic(), kind, grant);
    }

    /// Notes an event of an earlier moment.
    pub(super) fn note_at(&self, at: Duration, kind: Kind, grant: Grant) {
        self.note_from(at, at, at, kind, grant);
    }

    /// Notes a poll that has ended.
    pub(super) fn note_from(
        &self,
        at: Duration,
        until: Duration,
        deadline: Duration,
        kind: Kind,
        grant: Grant,
    ) {
        let name = KINDS.iter().find(|(known, _)| *known == kind);
        let (_, name) = name.expect("all kinds have names");
        let Grant {
            key,
            fence,
            mode,
            number,
            ..
        } = grant;
        let (until, deadline) = (until.as_nanos(), deadline.as_nanos());
        self.log.note(
            at,
            format_args!("{name} {key} {fence} {mode} {number} {until} {deadline}"),
        );
    }
}

/// All events of all processes, in the order of their times.
pub(super) fn read(directory: &Path) -> io::Result<Vec<Event>> {
    log::read(directory, parse)
}

fn parse(process: &str, at: Duration, words: &str) -> Event {
    let words: Vec<_> = words.split(' ').collect();
    let [name, key, fence, mode, number, until, ref deadline @ ..] = words[..] else {
        panic!("lines are written whole: {words:?}");
    };
    let time = |text: &str| Duration::from_nanos(text.parse().expect("nanoseconds"));
    let kind = KINDS.iter().find(|(_, known)| *known == name);
    Event {
        at,
        until: time(until),
        deadline: deadline.first().map(|it| time(it)),
        kind: kind.expect("a known kind").0,
        grant: Grant {
            key: key.parse().expect("a key"),
            fence: fence.parse().expect("a fence"),
            mode: mode.parse().expect("a mode"),
            process: process.parse().expect("a process"),
            number: number.parse().expect("a number"),
        },
    }
}

#[cfg(test)]
impl Event {
    /// A poll of the holder with this number, from one millisecond to another; its fence is its number.
    pub(super) fn poll(number: u32, mode: Mode, kind: Kind, at: u64, until: u64) -> Self {
        let grant = Grant {
            key: 0,
            fence: number.into(),
            mode,
            process: 1,
            number,
        };
        Self {
            at: Duration::from_millis(at),
            until: Duration::from_millis(until),
            deadline: None,
            kind,
            grant,
        }
    }

    /// The same under a local deadline.
    pub(super) fn under(self, deadline: u64) -> Self {
        let deadline = Some(Duration::from_millis(deadline));
        Self { deadline, ..self }
    }
}

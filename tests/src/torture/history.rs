//! What happened in a tortured run.

use std::{io, path::Path, time::Duration};

pub(super) use crate::log::monotonic;
use crate::log::{self, Log};

/// Where one process writes its events.
#[derive(Debug)]
pub(super) struct History(Log);

/// What a worker did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A lock was asked for that was granted later.
    Asked,
    /// The first poll of a body began.
    Enter,
    /// A later poll of a body began.
    Poll,
    /// The same, after the local deadline: never.
    Late,
    /// The body ended by itself.
    Done,
    /// The caller was told that the lock was lost.
    Lost,
    /// The fenced register took a write.
    Accepted,
    /// The fenced register refused a write.
    Stale,
}

const KINDS: [(Kind, &str); 8] = [
    (Kind::Asked, "asked"),
    (Kind::Enter, "enter"),
    (Kind::Poll, "poll"),
    (Kind::Late, "late"),
    (Kind::Done, "done"),
    (Kind::Lost, "lost"),
    (Kind::Accepted, "accepted"),
    (Kind::Stale, "stale"),
];

/// One line of a history.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// `CLOCK_MONOTONIC`, the same in all processes.
    pub(super) at: Duration,
    /// What happened.
    pub(super) kind: Kind,
    /// Under which key.
    pub(super) key: String,
    /// Under which fence.
    pub(super) fence: u64,
}

impl History {
    /// Appends to the file of this process in `directory`.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        Log::open(directory).map(Self)
    }

    /// Notes an event of this moment.
    pub(super) fn note(&self, kind: Kind, key: &str, fence: u64) {
        self.note_at(monotonic(), kind, key, fence);
    }

    /// Notes an event of an earlier moment.
    pub(super) fn note_at(&self, at: Duration, kind: Kind, key: &str, fence: u64) {
        let name = KINDS.iter().find(|(known, _)| *known == kind);
        let (_, name) = name.expect("all kinds have names");
        self.0.note(at, format_args!("{name} {key} {fence}"));
    }
}

/// All events of all processes, in the order of their times.
pub(super) fn read(directory: &Path) -> io::Result<Vec<Event>> {
    log::read(directory, |_, at, words| parse(at, words))
}

fn parse(at: Duration, words: &str) -> Event {
    let mut words = words.split(' ');
    let mut word = || words.next().expect("lines are written whole");
    let name = word();
    let kind = KINDS.iter().find(|(_, known)| *known == name);
    Event {
        at,
        kind: kind.expect("a known kind").0,
        key: word().to_owned(),
        fence: word().parse().expect("a fence"),
    }
}

//! What happened, one line and one `write(2)` an event, so that a killed process leaves whole lines behind.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

/// Where one process writes its events.
#[derive(Debug)]
pub(super) struct History(File);

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
        let path = directory.join(format!("{}.history", std::process::id()));
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self(file))
    }

    /// Notes an event of this moment.
    pub(super) fn note(&self, kind: Kind, key: &str, fence: u64) {
        self.note_at(monotonic(), kind, key, fence);
    }

    /// Notes an event of an earlier moment.
    pub(super) fn note_at(&self, at: Duration, kind: Kind, key: &str, fence: u64) {
        let name = KINDS.iter().find(|(known, _)| *known == kind);
        let (_, name) = name.expect("all kinds have names");
        let line = format!("{} {name} {key} {fence}\n", at.as_nanos());
        (&self.0)
            .write_all(line.as_bytes())
            .expect("the history can be written");
    }
}

/// All events of all processes, in the order of their times.
pub(super) fn read(directory: &Path) -> io::Result<Vec<Event>> {
    let mut events = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path: PathBuf = entry?.path();
        if path.extension().is_some_and(|it| it == "history") {
            let text = std::fs::read_to_string(path)?;
            events.extend(text.lines().map(parse));
        }
    }
    events.sort_by_key(|event| event.at);
    Ok(events)
}

fn parse(line: &str) -> Event {
    let mut words = line.split(' ');
    let mut word = || words.next().expect("lines are written whole");
    let at = word().parse().expect("nanoseconds");
    let name = word();
    let kind = KINDS.iter().find(|(_, known)| *known == name);
    Event {
        at: Duration::from_nanos(at),
        kind: kind.expect("a known kind").0,
        key: word().to_owned(),
        fence: word().parse().expect("a fence"),
    }
}

/// The time on a clock that all processes share.
pub(super) fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    now.try_into().expect("the clock started at zero")
}

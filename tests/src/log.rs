//! What processes did, one line and one `write(2)` an event, so that a killed process leaves whole lines behind.

use std::{
    fmt::Display,
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

/// Where one process writes its events.
#[derive(Debug)]
pub(crate) struct Log(File);

impl Log {
    /// Appends to the file of this process in `directory`.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        let path = directory.join(Self::file(std::process::id()));
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self(file))
    }

    /// The name of the file of a process.
    pub(crate) fn file(process: u32) -> String {
        format!("{process}.history")
    }

    /// Notes an event of that moment, in one line.
    pub(crate) fn note(&self, at: Duration, event: impl Display) {
        let line = format!("{} {event}\n", at.as_nanos());
        (&self.0)
            .write_all(line.as_bytes())
            .expect("the history can be written");
    }
}

/// All events of all processes in the order of their times; `parse` takes a process, a time and the noted words.
pub(crate) fn read<T>(
    directory: &Path,
    parse: impl Fn(&str, Duration, &str) -> T,
) -> io::Result<Vec<T>> {
    let mut events = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_none_or(|it| it != "history") {
            continue;
        }
        let process = path.file_stem().unwrap_or_default().to_string_lossy();
        for line in std::fs::read_to_string(&path)?.lines() {
            let (at, words) = line.split_once(' ').expect("lines are written whole");
            let at = Duration::from_nanos(at.parse().expect("nanoseconds"));
            events.push((at, parse(&process, at, words)));
        }
    }
    events.sort_by_key(|(at, _)| *at);
    Ok(events.into_iter().map(|(_, event)| event).collect())
}

/// The time on a clock that all processes share.
pub(crate) fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    now.try_into().expect("the clock started at zero")
}

//! Notes every step of the work as `tests/src/torture/history.rs` does.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::time::{ClockId, clock_gettime};

pub(crate) struct History {
    file: File,
    grants: AtomicU32,
}

/// One time that a lock was granted.
#[derive(Clone, Copy)]
pub(crate) struct Grant {
    key: usize,
    number: u32,
}

impl History {
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        let path = directory.join(format!("{}.history", std::process::id()));
        Ok(Self {
            file: OpenOptions::new().create(true).append(true).open(path)?,
            grants: AtomicU32::new(0),
        })
    }

    pub(crate) fn grant(&self, key: usize) -> Grant {
        let number = 1 + self.grants.fetch_add(1, Ordering::Relaxed);
        Grant { key, number }
    }

    /// A whole line is one write, so that the lines of tasks do not mix.
    pub(crate) fn note(&self, kind: &str, grant: Grant, at: i128) {
        let (until, Grant { key, number }) = (now(), grant);
        let line = format!("{at} {kind} {key} 0 x {number} {until}\n");
        let written = (&self.file).write_all(line.as_bytes());
        written.expect("the history can be written");
    }
}

/// Nanoseconds on the clock that all processes of a machine share.
pub(crate) fn now() -> i128 {
    let now = clock_gettime(ClockId::Monotonic);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}

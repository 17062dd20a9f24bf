//! CPU time and context switches of this process and of its threads.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The CPU time of all live threads.
pub(crate) fn of_process() -> Duration {
    sum(|_| true)
}

/// The CPU time of the threads with this name.
pub(crate) fn of_threads(name: &str) -> Duration {
    sum(|thread| {
        fs::read_to_string(thread.join("comm")).is_ok_and(|known| known.trim_end() == name)
    })
}

/// How often a live thread has left its processor, to wait or for another one; zero where the kernel does not report it.
pub(crate) fn switches() -> u64 {
    let count = |line: &str| -> Option<u64> {
        let (name, value) = line.split_once(':')?;
        let counts = name.ends_with("voluntary_ctxt_switches");
        value.trim().parse().ok().filter(|_| counts)
    };
    let of_thread = |thread: PathBuf| -> u64 {
        let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
        status.lines().filter_map(count).sum()
    };
    threads().map(of_thread).sum()
}

fn threads() -> impl Iterator<Item = PathBuf> {
    let threads = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    threads.map(|thread| thread.path())
}

/// In nanoseconds; zero where the kernel does not report it.
fn sum(wanted: impl Fn(&Path) -> bool) -> Duration {
    let nanoseconds = |thread: &Path| -> Option<u64> {
        let text = fs::read_to_string(thread.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    threads()
        .filter(|thread| wanted(thread))
        .filter_map(|thread| nanoseconds(&thread))
        .map(Duration::from_nanos)
        .sum()
}

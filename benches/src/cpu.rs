//! How long this process, or one of its threads, has run on a processor.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// The time of all threads that are alive.
pub(crate) fn of_process() -> Duration {
    sum(|_| true)
}

/// The time of the threads of this name.
pub(crate) fn of_threads(name: &str) -> Duration {
    sum(|thread| {
        fs::read_to_string(thread.join("comm")).is_ok_and(|known| known.trim_end() == name)
    })
}

/// The kernel tells it in nanoseconds; zero where it does not.
fn sum(wanted: impl Fn(&Path) -> bool) -> Duration {
    let threads = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let nanoseconds = |thread: &Path| -> Option<u64> {
        let text = fs::read_to_string(thread.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    threads
        .map(|thread| thread.path())
        .filter(|thread| wanted(thread))
        .filter_map(|thread| nanoseconds(&thread))
        .map(Duration::from_nanos)
        .sum()
}

//! CPU time of this process and of its threads.

use std::fs;
use std::path::Path;
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

/// In nanoseconds; zero where the kernel does not report it.
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

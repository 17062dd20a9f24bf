//! The processor time of a process and its children, those that have ended among them.

use std::fs;
use std::time::Duration;

/// Linux counts in hundredths of a second, whatever the kernel's own ticks are.
const TICK: Duration = Duration::from_millis(10);

pub(super) fn of_all(parent: u32) -> Duration {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let ticks = pids.filter_map(|pid| {
        let stat = Stat::of(pid)?;
        if pid == parent {
            return Some(stat.own + stat.ended);
        }
        (stat.parent == parent).then_some(stat.own)
    });
    TICK * ticks.sum::<u32>()
}

struct Stat {
    parent: u32,
    own: u32,
    /// Of children that have ended.
    ended: u32,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in brackets, may contain anything.
        let (_, rest) = text.rsplit_once(") ")?;
        let words: Vec<_> = rest.split(' ').collect();
        let number = |place: usize| words.get(place)?.parse::<u32>().ok();
        Some(Self {
            parent: number(1)?,
            own: number(11)? + number(12)?,
            ended: number(13)? + number(14)?,
        })
    }
}

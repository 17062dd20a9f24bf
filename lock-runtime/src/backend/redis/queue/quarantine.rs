//! Until when a server grants nothing, since it may have forgotten locks.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::backend::redis::protocol::reply::Trouble;
use crate::base::clock::Moment;

/// Until when nothing is granted.
#[derive(Debug)]
pub(super) struct Quarantine {
    pub(super) ends: Moment,
    pub(super) trouble: Trouble,
}

impl Quarantine {
    pub(super) fn new(now: Moment, left: Duration) -> Self {
        let until = SystemTime::now() + left;
        Self {
            ends: now.after(left),
            trouble: Trouble::NotNow(Arc::new(Quarantined { until })),
        }
    }
}

/// The server may have forgotten locks.
#[derive(Debug)]
struct Quarantined {
    until: SystemTime,
}

impl fmt::Display for Quarantined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.until.duration_since(SystemTime::UNIX_EPOCH);
        let second = until.unwrap_or_default().as_secs() % (24 * 60 * 60);
        let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
        let left = self.until.duration_since(SystemTime::now());
        write!(
            f,
            "no lock is granted until {hours:02}:{minutes:02}:{seconds:02} UTC, for another {:.1?}: the server has \
             started or taken over, and may have forgotten locks (`quarantine`)",
            left.unwrap_or_default()
        )
    }
}

impl std::error::Error for Quarantined {}

//! A server that may have forgotten locks: until the last of them has ended nothing is
//! granted. What is held is renewed, and ends without being handed on.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{Queue, Stage};
use crate::backend::redis::protocol::reply::Trouble;
use crate::base::clock::Moment;

/// Until when nothing is granted.
#[derive(Debug)]
pub(super) struct Quarantine {
    pub(super) ends: Moment,
    pub(super) trouble: Trouble,
}

impl Queue {
    /// The connection that is open now is to a server that grants nothing for this time.
    pub(crate) fn quarantined(&mut self, now: Moment, left: Option<Duration>) {
        self.quarantine = left.map(|left| Quarantine {
            ends: now.after(left),
            trouble: Trouble::NotNow(Arc::new(Quarantined {
                until: SystemTime::now() + left,
            })),
        });
    }

    /// Why nothing can be acquired.
    pub(super) fn obstacle(&self) -> Option<&Trouble> {
        let quarantine = self.quarantine.as_ref().map(|it| &it.trouble);
        self.down.as_ref().or(quarantine)
    }

    /// Those who want a lock are told that they have to wait.
    pub(super) fn tell_of_quarantine(&mut self) {
        let Some(quarantine) = &self.quarantine else {
            return;
        };
        let trouble = quarantine.trouble.clone();
        let wants = |stage| matches!(stage, Stage::Unsent | Stage::Unsure);
        for id in self.all(wants) {
            self.trouble(id, &trouble);
        }
    }

    /// Grants again once its time has come.
    pub(super) fn end_quarantine(&mut self, now: Moment) {
        if self.quarantine.take_if(|it| it.ends <= now).is_some() {
            self.rooms.ask_all(now);
            for id in self.all(|stage| stage == Stage::Unsent) {
                self.retry(now, id);
            }
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

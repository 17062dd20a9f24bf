//! Deletes the rows of locks that nobody has used for an hour, a part of them each minute.

use std::time::Duration;

use crate::base::clock::Moment;

const EVERY: Duration = Duration::from_secs(60);
/// How many names are looked at in one call.
pub(crate) const MOST: i64 = 10_000;

/// When the next rows are due, and where they begin.
#[derive(Debug)]
pub(crate) struct Upkeep {
    pub(crate) due: Moment,
    /// The last name that has been looked at.
    pub(crate) after: Box<str>,
}

impl Upkeep {
    /// The first time is at random: many managers may start together.
    pub(crate) fn new(now: Moment) -> Self {
        Self {
            due: now.after(EVERY.mul_f64(fastrand::f64())),
            after: Box::default(),
        }
    }

    /// The name behind which to look now, if it is due.
    pub(crate) fn begin(&mut self, now: Moment) -> Option<&str> {
        if now < self.due {
            return None;
        }
        self.due = now.after(EVERY);
        Some(&self.after)
    }

    /// Continues behind this name; `None` if the last name was reached.
    pub(crate) fn go_on(&mut self, next: Option<&str>) {
        self.after = next.unwrap_or_default().into();
    }
}

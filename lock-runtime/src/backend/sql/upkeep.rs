//! Deletes the rows of locks that nobody has used for an hour, a part of them each minute.

use std::time::Duration;

use crate::base::clock::Moment;

const EVERY: Duration = Duration::from_secs(60);

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

    /// Continues behind this name at this moment, or from the beginning in a minute if the last name was reached.
    pub(crate) fn go_on(&mut self, soon: Moment, next: Option<&str>) {
        if next.is_some() {
            self.due = soon;
        }
        self.after = next.unwrap_or_default().into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_soon_up_to_the_last_name() {
        let start = Moment::from_nanos(1);
        let mut upkeep = Upkeep::new(start);
        let due = upkeep.due;
        assert_eq!(upkeep.begin(due), Some(""));
        let soon = due.after(Duration::from_secs(1));
        upkeep.go_on(soon, Some("b"));
        assert_eq!(upkeep.begin(soon), Some("b"));
        upkeep.go_on(soon.after(Duration::from_secs(1)), None);
        assert_eq!(upkeep.due, soon.after(EVERY));
        assert_eq!(upkeep.begin(soon.after(EVERY)), Some(""));
    }
}

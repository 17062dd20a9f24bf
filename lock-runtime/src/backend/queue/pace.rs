//! How often waiters look at a lock when nobody notifies them that it is free: often while
//! locks are held for short, and seldom while one is held for long.

use std::time::Duration;

use super::protocol::ahead::Ahead;
use crate::base::clock::Moment;

/// A lock is free for this part of the time for which it was held, until somebody looks.
const PART: u32 = 8;
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(250);

/// Who holds a lock, and since when we know.
#[derive(Debug, Default)]
pub(super) struct Pace(Option<(Box<str>, Moment)>);

impl Pace {
    /// How long to wait until the next look. No two clients look at the same times.
    pub(super) fn next(&mut self, now: Moment, ahead: &Ahead) -> Duration {
        let holder = &ahead.owner;
        let known = self.0.take().filter(|(known, _)| known == holder);
        let (_, since) = self
            .0
            .insert(known.unwrap_or_else(|| (holder.clone(), now)));
        let held = now.since(*since);
        let usual = if ahead.by_far {
            LONGEST
        } else {
            (held / PART).clamp(SHORTEST, LONGEST)
        };
        usual.mul_f64(0.5 + fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::crowd::Crowd;

    #[test]
    fn the_longer_a_lock_is_held_the_less_often_it_is_looked_at() {
        let second = Duration::from_secs(1);
        let start = Moment::from_nanos(1);
        let mut pace = Pace::default();
        let mut within = |now, holder: &str, usual: Duration| {
            let ahead = Ahead {
                owner: holder.into(),
                left: None,
                crowd: Crowd::default(),
                by_far: holder == "far",
            };
            let next = pace.next(now, &ahead);
            assert!(next >= usual / 2 && next <= usual * 3 / 2, "{next:?}");
        };
        within(start, "a", SHORTEST);
        within(start.after(second), "a", second / PART);
        within(start.after(60 * second), "a", LONGEST);
        within(start.after(61 * second), "b", SHORTEST);
        within(start.after(61 * second), "far", LONGEST);
    }
}

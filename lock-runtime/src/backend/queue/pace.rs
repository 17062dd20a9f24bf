//! How often waiters look at a lock when nobody notifies them that it is free: often while
//! locks are held for short, and seldom while one is held for long.

use std::time::Duration;

use super::protocol::ahead::Ahead;
use crate::base::clock::Moment;

/// A lock is free for this part of the time for which it was held, until somebody looks.
const PART: u32 = 8;
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(250);

/// Who holds a lock, and how far the queue is.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The holder, and since when we know.
    holder: Option<(Box<str>, Moment)>,
    /// How many came before us at the last look.
    last: Option<(u32, Moment)>,
    /// How long a lock needed from one to the next in the best of the last looks. All of them, in
    /// the mean, would contain how late waiters have looked, and each would look later still.
    each: Option<Duration>,
}

impl Pace {
    /// How long to wait until the next look. No two clients look at the same times.
    pub(super) fn next(&mut self, now: Moment, ahead: &Ahead) -> Duration {
        let holder = &ahead.owner;
        let known = self.holder.take().filter(|(known, _)| known == holder);
        let (_, since) = self
            .holder
            .insert(known.unwrap_or_else(|| (holder.clone(), now)));
        let usual = (now.since(*since) / PART).clamp(SHORTEST, LONGEST);
        let last = std::mem::replace(&mut self.last, ahead.before.map(|it| (it, now)));
        let next = match (ahead.before, last) {
            (None, _) => LONGEST,
            (Some(0), _) => usual,
            // Half of the time until our turn, if the queue goes on like this.
            (Some(before), Some((then, at))) if before < then => {
                let lately = now.since(at) / (then - before);
                let best = self.each.map_or(lately, |it| lately.min(it * 4 / 3));
                self.each = Some(best.max(Duration::from_micros(1)));
                best.saturating_mul(before) / 2
            }
            (Some(before), _) => usual.saturating_mul(before),
        };
        next.clamp(SHORTEST, LONGEST).mul_f64(0.5 + fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::crowd::Crowd;

    /// Checks how long it is until the next look.
    fn expect(pace: &mut Pace, now: Moment, holder: &str, before: Option<u32>, usual: Duration) {
        let ahead = Ahead {
            owner: holder.into(),
            left: None,
            crowd: Crowd::default(),
            before,
        };
        let next = pace.next(now, &ahead);
        assert!(next >= usual / 2 && next <= usual * 3 / 2, "{next:?}");
    }

    #[test]
    fn the_longer_a_lock_is_held_the_less_often_it_is_looked_at() {
        let second = Duration::from_secs(1);
        let start = Moment::from_nanos(1);
        let mut pace = Pace::default();
        let first = Some(0);
        expect(&mut pace, start, "a", first, SHORTEST);
        expect(&mut pace, start.after(second), "a", first, second / PART);
        expect(&mut pace, start.after(60 * second), "a", first, LONGEST);
        expect(&mut pace, start.after(61 * second), "b", first, SHORTEST);
        expect(&mut pace, start.after(61 * second), "b", None, LONGEST);
    }

    #[test]
    fn a_waiter_looks_again_shortly_before_its_turn() {
        let ms = Duration::from_millis;
        let start = Moment::from_nanos(1);
        let mut pace = Pace::default();
        expect(&mut pace, start, "a", Some(20), 20 * SHORTEST);
        // Ten hand-overs in 40 ms, and ten are left.
        expect(&mut pace, start.after(ms(40)), "b", Some(10), ms(20));
        expect(&mut pace, start.after(ms(70)), "c", Some(1), SHORTEST);
        expect(&mut pace, start.after(ms(73)), "d", Some(0), SHORTEST);
        // Another one of ours waits behind the one that has the lock now.
        expect(&mut pace, start.after(ms(75)), "e", Some(9), 9 * SHORTEST);
        expect(&mut pace, start.after(ms(99)), "e", Some(9), 9 * ms(3));
    }

    #[test]
    fn one_slow_hand_over_says_little_about_the_next() {
        let ms = Duration::from_millis;
        let start = Moment::from_nanos(1);
        let mut pace = Pace::default();
        expect(&mut pace, start, "a", Some(20), 20 * SHORTEST);
        // Ten hand-overs in 60 ms.
        expect(&mut pace, start.after(ms(60)), "b", Some(10), ms(30));
        expect(&mut pace, start.after(ms(1_060)), "c", Some(9), ms(36));
        expect(&mut pace, start.after(ms(2_060)), "d", Some(8), ms(128) / 3);
    }
}

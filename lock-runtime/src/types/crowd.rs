//! The number of waiters for a lock, and the speed of their queue.

use std::time::Duration;

/// The waiters of a lock, without the asking one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Crowd {
    pub(crate) waiting: u32,
    /// How long the first of them has waited.
    pub(crate) longest: Duration,
    /// Whether no more may wait.
    pub(crate) is_full: bool,
}

impl Crowd {
    /// The estimated time until the turn of a newcomer; `None` without waiters or knowledge.
    ///
    /// Assumes a steady queue: since the first waiter joined, as many were served as now wait. A
    /// newcomer waits for all of them and for the holder. While a queue grows, the first estimate
    /// is too short, and later ones are longer.
    pub(crate) fn turn(self) -> Option<Duration> {
        let each = self.longest.checked_div(self.waiting)?;
        Some(each.saturating_mul(self.waiting.saturating_add(1)))
    }

    /// Accounts for a waiter that leaves the queue after this time: the waiters ahead of it have
    /// waited longer.
    pub(crate) fn outlasted(&mut self, waited: Duration) {
        self.longest = self.longest.max(waited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn crowd(waiting: u32, longest: Duration) -> Crowd {
        Crowd {
            waiting,
            longest,
            is_full: false,
        }
    }

    #[test]
    fn a_newcomer_waits_for_all_and_the_holder() {
        assert_eq!(crowd(4, 100 * MS).turn(), Some(125 * MS));
        assert_eq!(crowd(1, 20 * MS).turn(), Some(40 * MS));
        assert_eq!(crowd(0, Duration::ZERO).turn(), None);
        let most = crowd(u32::MAX, Duration::MAX).turn();
        assert!(most.is_some_and(|turn| turn > Duration::MAX / 2));
    }

    #[test]
    fn those_ahead_have_waited_for_longer() {
        let mut crowd = crowd(3, MS);
        crowd.outlasted(60 * MS);
        assert_eq!(crowd.turn(), Some(80 * MS));
        crowd.outlasted(MS);
        assert_eq!(crowd.turn(), Some(80 * MS));
    }
}

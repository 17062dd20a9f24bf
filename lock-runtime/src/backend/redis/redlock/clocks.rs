//! The positions of newcomers, by a clock that the servers share.

use std::time::Duration;

use crate::base::clock::Moment;

/// By how many µs a clock that shows this time since 1970 is ahead of ours.
pub(crate) fn ahead(shows: Duration, now: Moment) -> i64 {
    let shows = i64::try_from(shows.as_micros()).unwrap_or(i64::MAX);
    shows.saturating_sub_unsigned(now.as_nanos() / 1000)
}

/// The known times of the servers' clocks. The positions of different processes follow the order of
/// their arrival as long as a majority of these clocks agree.
#[derive(Debug)]
pub(crate) struct Clocks {
    /// By how many µs each is ahead of ours.
    ahead: Vec<Option<i64>>,
    /// The same of the machine's clock, which counts before any server has answered.
    machine: i64,
    last: u64,
}

impl Clocks {
    pub(crate) fn new(servers: usize, machine: i64) -> Self {
        Self {
            ahead: vec![None; servers],
            machine,
            last: 0,
        }
    }

    pub(super) fn servers(&self) -> usize {
        self.ahead.len()
    }

    pub(super) fn learn(&mut self, server: usize, ahead: i64) {
        if self.ahead[server].replace(ahead) != Some(ahead) {
            // A position from a wrong clock must hold no later one back.
            self.last = 0;
        }
    }

    /// The position of a newcomer: in µs, and behind all earlier ones.
    pub(super) fn position(&mut self, now: Moment) -> u64 {
        let mut known: Vec<_> = self.ahead.iter().flatten().copied().collect();
        known.sort_unstable();
        let median = known.get(known.len() / 2).copied();
        let ours = now.as_nanos() / 1000;
        let shared = ours.saturating_add_signed(median.unwrap_or(self.machine));
        self.last = shared.max(self.last + 1);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_clock_that_is_wrong_moves_nobody() {
        let mut clocks = Clocks::new(3, 5);
        let now = |micros: u64| Moment::from_nanos(micros * 1000);
        assert_eq!(clocks.position(now(100)), 105, "nobody has answered yet");
        for (server, ahead) in [1_000, 9_000_000, 1_002].into_iter().enumerate() {
            clocks.learn(server, ahead);
        }
        assert_eq!(clocks.position(now(200)), 1_202);
        assert_eq!(clocks.position(now(200)), 1_203, "no two have one position");
    }

    #[test]
    fn who_had_a_position_by_a_wrong_clock_gets_a_right_one_later() {
        let mut clocks = Clocks::new(3, 86_400_000_000);
        let now = Moment::from_nanos(100_000);
        assert_eq!(
            clocks.position(now),
            86_400_000_100,
            "by the machine's clock"
        );
        for server in 0..2 {
            clocks.learn(server, 1_000);
        }
        assert_eq!(clocks.position(now), 1_100, "by those of the servers");
    }
}

//! The pauses between attempts to connect, the next server, and the time limit of an attempt.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_millis(500);
/// A server that answers may serve again at any time, and its held locks have to be
/// renewed.
const LONGEST_IF_ANSWERED: Duration = Duration::from_millis(100);
/// How often a time limit doubles at most.
const DOUBLINGS: usize = 8;

/// How long the first attempt may take: the time to connect allows several.
pub(crate) fn first_attempt(connect_timeout: Duration) -> Duration {
    connect_timeout / 5
}

/// Counts attempts and connections that failed in a row. Only a call that [worked](Self::worked)
/// ends the row: a server may accept connections, and refuse every call.
#[derive(Debug)]
pub(crate) struct Backoff {
    /// How many servers are tried in turn.
    servers: usize,
    /// The number of the next one.
    pub(crate) server: usize,
    failures: usize,
    /// The next pause, before it is varied.
    pause: Duration,
}

impl Backoff {
    pub(crate) fn new(servers: usize) -> Self {
        Self {
            servers,
            server: 0,
            failures: 0,
            pause: FIRST,
        }
    }

    /// How long to wait after an attempt that failed.
    pub(crate) fn failed(&mut self) -> Duration {
        self.next(Duration::ZERO, LONGEST, self.servers)
    }

    /// How long to wait for a server that answers, and does not serve.
    pub(crate) fn refused(&mut self) -> Duration {
        self.next(Duration::ZERO, LONGEST_IF_ANSWERED, self.servers)
    }

    /// How long to wait after a connection that was open for this time. The pause counts from
    /// its opening: one that lasted is followed by another at once. Any other is followed by a
    /// pause, since the other servers may be of the same kind.
    pub(crate) fn broken(&mut self, open_for: Duration) -> Duration {
        self.next(open_for, LONGEST_IF_ANSWERED, 1)
    }

    /// The server answers in time, which proves nothing for later.
    pub(crate) fn answered(&mut self) {
        self.failures = 0;
    }

    /// The server has done what a call asked for.
    pub(crate) fn worked(&mut self) {
        self.failures = 0;
        self.pause = FIRST;
    }

    /// One pause for so many `attempts`.
    fn next(&mut self, passed: Duration, longest: Duration, attempts: usize) -> Duration {
        self.server = (self.server + 1) % self.servers;
        // Varied, so that clients do not all come back at once.
        let pause = self.pause.min(longest).mul_f64(0.5 + fastrand::f64());
        let left = pause.saturating_sub(passed);
        if left.is_zero() {
            return left;
        }
        self.failures += 1;
        if !self.failures.is_multiple_of(attempts) {
            // Another server may serve.
            return Duration::ZERO;
        }
        self.pause = (self.pause * 2).min(longest);
        left
    }

    /// How long the next attempt may take: a server that is busy with handshakes that are given
    /// up too soon would be busy for ever.
    pub(crate) fn attempt(&self, connect_timeout: Duration) -> Duration {
        self.stretched(first_attempt(connect_timeout))
            .min(connect_timeout)
    }

    /// A time limit that doubles each time that all servers have failed.
    pub(crate) fn stretched(&self, limit: Duration) -> Duration {
        let rounds = self.failures / self.servers;
        limit.saturating_mul(1 << rounds.min(DOUBLINGS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that a pause is this long, give or take a half.
    fn about(pause: Duration, millis: u64) {
        let expected = Duration::from_millis(millis);
        let range = expected / 2..=expected.mul_f64(1.5);
        assert!(range.contains(&pause), "{pause:?} for {millis} ms");
    }

    #[test]
    fn pauses_double_until_something_works() {
        let mut backoff = Backoff::new(1);
        for millis in [20, 40, 80, 160, 320, 500, 500] {
            about(backoff.failed(), millis);
        }
        backoff.worked();
        about(backoff.failed(), 20);
    }

    #[test]
    fn a_connection_that_broke_is_followed_by_another_at_once_if_it_lasted() {
        let mut backoff = Backoff::new(1);
        let lasted = Duration::from_secs(1);
        for millis in [20, 40, 80, 100, 100] {
            assert_eq!(backoff.broken(lasted), Duration::ZERO);
            about(backoff.broken(Duration::ZERO), millis);
        }
        assert_eq!(backoff.broken(lasted), Duration::ZERO);
        about(backoff.failed(), 100);
    }

    #[test]
    fn connections_to_several_servers_that_break_one_after_the_other_have_pauses() {
        let mut backoff = Backoff::new(3);
        for millis in [20, 40, 80, 100, 100] {
            backoff.answered();
            about(backoff.broken(Duration::ZERO), millis);
        }
    }

    #[test]
    fn a_server_that_answers_is_tried_again_soon() {
        let mut backoff = Backoff::new(1);
        for _ in 0..10 {
            backoff.failed();
        }
        about(backoff.refused(), 100);
        about(backoff.refused(), 100);
        about(backoff.failed(), 100);
        about(backoff.failed(), 200);
    }

    #[test]
    fn all_servers_are_tried_before_a_pause() {
        let mut backoff = Backoff::new(3);
        for millis in [20, 40, 80] {
            for server in 0..2 {
                assert_eq!(backoff.server, server);
                assert_eq!(backoff.failed(), Duration::ZERO);
            }
            about(backoff.failed(), millis);
        }
    }

    #[test]
    fn attempts_get_more_time_once_all_servers_have_failed() {
        let mut backoff = Backoff::new(2);
        let connect_timeout = Duration::from_secs(5);
        for seconds in [1, 1, 2, 2, 4, 4, 5, 5] {
            let attempt = backoff.attempt(connect_timeout);
            assert_eq!(attempt, Duration::from_secs(seconds));
            backoff.failed();
        }
        backoff.worked();
        let attempt = backoff.attempt(connect_timeout);
        assert_eq!(attempt, first_attempt(connect_timeout));
        assert_eq!(backoff.stretched(Duration::MAX), Duration::MAX);
    }
}

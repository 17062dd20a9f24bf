//! The deadline of a lease: until then, its holder is sure of the lock.

use std::time::Duration;

use crate::base::clock::Moment;

/// The last moment at which a lock is certainly held, given the moment **before** the command was
/// sent that set its `ttl` on the server.
///
/// The server starts to count after `sent`. Its clock may run faster than the client's by the
/// drift (1 % of the ttl + 2 ms, as in the Redlock algorithm), and the body still has the margin
/// in which to stop.
pub(crate) fn deadline(sent: Moment, ttl: Duration) -> Moment {
    sent.after(ttl.saturating_sub(drift(ttl) + margin(ttl)))
}

fn drift(ttl: Duration) -> Duration {
    ttl / 100 + Duration::from_millis(2)
}

/// The margin: the time in which code that has seen the lock held finishes its step.
pub(crate) fn margin(ttl: Duration) -> Duration {
    (ttl / 50).max(Duration::from_millis(50)).min(ttl / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(ttl_ms: u64) -> u128 {
        let sent = Moment::from_nanos(1);
        deadline(sent, Duration::from_millis(ttl_ms))
            .since(sent)
            .as_millis()
    }

    #[test]
    fn the_deadline_leaves_drift_and_margin() {
        assert_eq!(left(10_000), 10_000 - 102 - 200);
        assert_eq!(left(1_000), 1_000 - 12 - 50);
        assert_eq!(left(100), 100 - 3 - 25);
    }

    #[test]
    fn a_tiny_ttl_does_not_underflow() {
        assert_eq!(left(1), 0);
    }
}

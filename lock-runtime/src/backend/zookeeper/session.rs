//! The session with the servers, on which all locks of a manager stand: until when it
//! surely lives. A state machine without I/O.
//!
//! A server answers pings by itself, and tells the leader of its clients only now and
//! then; so pings say nothing. A heartbeat is a write, which the leader has carried out
//! if it is confirmed: at that time the leader heard of our server, and by it of what
//! that had heard of us, which was the heartbeat before at least. So a confirmed
//! heartbeat counts from when the one before it was sent. The leader itself answers
//! whoever connects; that counts directly.

use std::time::Duration;

use super::protocol::connect::Identity;
use crate::base::clock::Moment;
use crate::vocabulary::deadline::deadline;

/// A session that a server has confirmed.
pub(crate) struct Session {
    pub(crate) identity: Identity,
    /// What the server grants, which may be another time than what was asked for.
    pub(crate) timeout: Duration,
    /// From when the timeout counts.
    since: Moment,
    /// When the last confirmed heartbeat was sent, or the request to connect.
    last: Moment,
    in_flight: Option<Moment>,
}

impl Session {
    /// A server has welcomed us to it, or to it again, after a request that was sent at
    /// `sent`.
    pub(crate) fn new(identity: Identity, timeout: Duration, sent: Moment) -> Self {
        Self {
            identity,
            timeout,
            since: sent,
            last: sent,
            in_flight: None,
        }
    }

    pub(crate) fn since(&self) -> Moment {
        self.since
    }

    /// Until when it surely lives.
    pub(crate) fn deadline(&self) -> Moment {
        deadline(self.since, self.timeout)
    }

    /// When the next heartbeat is due; `None` while one is in flight.
    pub(crate) fn next_heartbeat(&self) -> Option<Moment> {
        let due = self.last.after(self.timeout / 4);
        self.in_flight.is_none().then_some(due)
    }

    /// A heartbeat is sent.
    pub(crate) fn sent(&mut self, now: Moment) {
        self.in_flight = Some(now);
    }

    /// It is confirmed.
    pub(crate) fn confirmed(&mut self) {
        if let Some(sent) = self.in_flight.take() {
            self.since = self.last;
            self.last = sent;
        }
    }

    /// The heartbeat in flight does not count.
    pub(crate) fn unanswered(&mut self) {
        self.in_flight = None;
    }

    /// How long a server may leave requests unanswered, so that there is time to ask
    /// another one.
    pub(crate) fn patience(&self) -> Duration {
        patience(self.timeout)
    }
}

/// The same for a session of this timeout.
pub(crate) fn patience(timeout: Duration) -> Duration {
    (timeout / 6).max(Duration::from_millis(50))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::zookeeper::protocol::connect::welcome;

    const TIMEOUT: Duration = Duration::from_secs(8);

    fn session(sent: Moment) -> Session {
        let packet: Vec<u8> = [0_i32, 8_000, 0, 7, 0]
            .iter()
            .flat_map(|it| it.to_be_bytes())
            .collect();
        let welcome = welcome(&packet).expect("a packet");
        Session::new(welcome.identity.expect("a session"), welcome.timeout, sent)
    }

    #[test]
    fn a_heartbeat_is_due_after_a_quarter_and_one_is_in_flight() {
        let start = Moment::from_nanos(1);
        let mut session = session(start);
        assert_eq!(session.next_heartbeat(), Some(start.after(TIMEOUT / 4)));
        session.sent(start.after(TIMEOUT / 4));
        assert_eq!(session.next_heartbeat(), None);
        session.confirmed();
        assert_eq!(session.next_heartbeat(), Some(start.after(TIMEOUT / 2)));
    }

    #[test]
    fn a_confirmed_heartbeat_counts_from_the_one_before() {
        let start = Moment::from_nanos(1);
        let mut session = session(start);
        let [first, second] = [1, 2].map(|quarters| start.after(TIMEOUT / 4 * quarters));
        session.sent(first);
        assert_eq!(session.since(), start, "it is not confirmed");
        session.confirmed();
        assert_eq!(session.since(), start, "there was none before it");
        session.sent(second);
        session.confirmed();
        assert_eq!(session.since(), first);
        assert_eq!(session.deadline(), deadline(first, TIMEOUT));
        session.confirmed();
        assert_eq!(session.since(), first, "nothing was in flight");
    }

    #[test]
    fn a_heartbeat_whose_answer_will_not_come_does_not_count() {
        let start = Moment::from_nanos(1);
        let mut session = session(start);
        session.sent(start.after(TIMEOUT / 4));
        session.unanswered();
        assert_eq!(session.next_heartbeat(), Some(start.after(TIMEOUT / 4)));
        session.confirmed();
        assert_eq!((session.since(), session.last), (start, start));
    }
}

//! The session with the servers, which all locks of a manager share: until when it
//! surely lives. A state machine without I/O.
//!
//! A server answers pings by itself, and reports its clients to the leader only now and
//! then, so pings prove nothing. A heartbeat is a write: when it is confirmed, the leader
//! has carried it out. At that time the leader heard from our server, and the server had
//! heard at least our heartbeat before that one. So a confirmed heartbeat counts from the
//! moment at which the one before it was sent. A new session is answered by the leader
//! itself, so it counts from its own request.

use std::time::Duration;

use super::protocol::connect::Identity;
use crate::base::clock::Moment;
use crate::types::deadline::deadline;

/// A session that a server has confirmed.
pub(crate) struct Session {
    pub(crate) identity: Identity,
    /// The time that the server grants, which may differ from the requested one.
    pub(crate) timeout: Duration,
    /// From when the timeout counts.
    since: Moment,
    /// When the last confirmed heartbeat was sent, or the request to connect.
    last: Moment,
    /// When the next one is to be sent.
    due: Moment,
    in_flight: Option<Moment>,
}

impl Session {
    /// The servers have made it for a request that was sent at `sent`.
    pub(crate) fn new(identity: Identity, timeout: Duration, sent: Moment) -> Self {
        Self {
            identity,
            timeout,
            since: sent,
            last: sent,
            due: sent.after(timeout / 4),
            in_flight: None,
        }
    }

    /// A server has welcomed us to it again, as `welcomed`.
    pub(crate) fn resume(&mut self, welcomed: &Self) {
        // Another leader may count by the time that was granted first.
        self.timeout = self.timeout.min(welcomed.timeout);
        self.last = welcomed.last;
        self.due = welcomed.last;
        self.in_flight = None;
    }

    pub(crate) fn since(&self) -> Moment {
        self.since
    }

    /// Until when it surely lives.
    pub(crate) fn deadline(&self) -> Moment {
        deadline(self.since, self.timeout)
    }

    /// When the servers end it, as late as what was sent last may have set that.
    pub(crate) fn ends(&self) -> Moment {
        let sent = self.in_flight.unwrap_or(self.last);
        sent.max(self.last).after(self.timeout)
    }

    /// When the next heartbeat is due; `None` while one is in flight.
    pub(crate) fn next_heartbeat(&self) -> Option<Moment> {
        self.in_flight.is_none().then_some(self.due)
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
            self.due = sent.after(self.timeout / 4);
        }
    }

    /// It is refused, and sent again when there was time to do something about that.
    pub(crate) fn refused(&mut self, now: Moment) {
        self.in_flight = None;
        self.due = now.after(self.timeout / 16);
    }

    /// How long a server may leave requests unanswered, so that there is time to ask
    /// another one.
    pub(crate) fn call_timeout(&self) -> Duration {
        (self.timeout / 6).max(Duration::from_millis(50))
    }
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
    fn it_may_last_from_what_was_sent_last_also_without_an_answer() {
        let start = Moment::from_nanos(1);
        let mut session = session(start);
        assert_eq!(session.ends(), start.after(TIMEOUT));
        let beat = start.after(TIMEOUT / 4);
        session.sent(beat);
        assert_eq!(session.ends(), beat.after(TIMEOUT));
        assert_eq!(session.deadline(), deadline(start, TIMEOUT));
    }

    #[test]
    fn a_heartbeat_that_is_refused_does_not_count_and_is_not_sent_again_at_once() {
        let start = Moment::from_nanos(1);
        let mut session = session(start);
        let beat = start.after(TIMEOUT / 4);
        session.sent(beat);
        session.refused(beat);
        assert_eq!(session.next_heartbeat(), Some(beat.after(TIMEOUT / 16)));
        session.confirmed();
        assert_eq!((session.since(), session.last), (start, start));
    }

    #[test]
    fn to_connect_again_counts_with_the_first_write_that_is_confirmed() {
        let start = Moment::from_nanos(1);
        let mut again = session(start);
        let deadline = again.deadline();
        // A leader without followers answers, again and again, and confirms nothing.
        for sixth in 1..=5 {
            let sent = start.after(TIMEOUT / 6 * sixth);
            again.resume(&session(sent));
            assert_eq!(again.deadline(), deadline, "nobody else has heard of it");
            assert_eq!(again.next_heartbeat(), Some(sent), "at once");
            again.sent(sent);
        }
        let sent = start.after(TIMEOUT / 8 * 7);
        again.resume(&session(sent));
        again.confirmed();
        assert_eq!(again.since(), start, "no write went over this connection");
        again.sent(sent.after(TIMEOUT / 100));
        again.confirmed();
        assert_eq!(again.since(), sent);
    }

    #[test]
    fn the_shorter_time_counts_where_servers_grant_several() {
        let start = Moment::from_nanos(1);
        let mut again = session(start);
        let mut welcomed = session(start);
        welcomed.timeout = TIMEOUT / 2;
        again.resume(&welcomed);
        again.resume(&session(start));
        assert_eq!(again.deadline(), deadline(start, TIMEOUT / 2));
    }
}

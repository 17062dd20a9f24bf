//! How long a server may be silent before its connection counts as broken.

use std::time::Duration;

use crate::base::clock::Moment;

/// A last chance for an answer that has arrived but has not been read: the whole process may
/// have been stopped.
const GRACE: Duration = Duration::from_millis(20);

/// How long a call may take on a connection that answers others: the longest time limit of a call.
#[cfg(feature = "etcd")]
const LOST: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Silence {
    /// When the last answer came in.
    heard: Moment,
    grace: Option<Moment>,
}

impl Silence {
    pub(crate) fn since(heard: Moment) -> Self {
        Self { heard, grace: None }
    }

    /// An answer has come in.
    pub(crate) fn heard(&mut self, now: Moment) {
        *self = Self::since(now);
    }

    /// Until when a server may leave unanswered what was `sent`. One that still answers earlier
    /// calls is slow, not silent.
    pub(crate) fn limit(&self, sent: Moment, call_timeout: Duration) -> Moment {
        sent.max(self.heard).after(call_timeout)
    }

    /// Whether a call has got lost: the server has answered others since it was `sent`, and has left this one
    /// unanswered for as long as any call may take.
    #[cfg(feature = "etcd")]
    pub(crate) fn passes_over(&self, now: Moment, sent: Moment) -> bool {
        self.heard > sent && now >= sent.after(LOST)
    }

    /// When the silence has lasted too long; `limit` is the earliest one.
    pub(crate) fn ends(&self, limit: Option<Moment>) -> Option<Moment> {
        let limit = limit?;
        Some(self.grace.unwrap_or(limit))
    }

    /// Whether it has lasted too long, also after the last chance.
    pub(crate) fn is_over(&mut self, now: Moment, limit: Option<Moment>) -> bool {
        if self.ends(limit).is_none_or(|at| now < at) {
            return false;
        }
        let had_grace = self.grace.is_some();
        self.grace = Some(now.after(GRACE));
        had_grace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(100);

    #[test]
    fn a_server_that_answers_something_is_not_silent() {
        let start = Moment::from_nanos(1);
        let silence = Silence::since(start.after(TIMEOUT));
        assert_eq!(silence.limit(start, TIMEOUT), start.after(2 * TIMEOUT));
        let later = start.after(3 * TIMEOUT);
        assert_eq!(silence.limit(later, TIMEOUT), later.after(TIMEOUT));
    }

    #[cfg(feature = "etcd")]
    #[test]
    fn a_call_that_is_passed_over_for_long_is_lost() {
        let sent = Moment::from_nanos(1);
        assert!(!Silence::since(sent).passes_over(sent.after(2 * LOST), sent));
        let heard = Silence::since(sent.after(TIMEOUT));
        assert!(!heard.passes_over(sent.after(LOST / 2), sent));
        assert!(heard.passes_over(sent.after(LOST), sent));
    }

    #[test]
    fn the_last_chance_is_given_once_for_each_answer() {
        let start = Moment::from_nanos(1);
        let limit = Some(start.after(TIMEOUT));
        let mut silence = Silence::since(start);
        assert!(!silence.is_over(start, limit) && !silence.is_over(start.after(TIMEOUT), None));
        assert!(!silence.is_over(start.after(TIMEOUT), limit));
        let grace = start.after(TIMEOUT + GRACE);
        assert_eq!(silence.ends(limit), Some(grace));
        assert!(!silence.is_over(start.after(TIMEOUT), limit));
        assert!(silence.is_over(grace, limit));
        let mut silence = Silence::since(grace);
        assert!(!silence.is_over(grace, limit), "there was an answer");
    }
}

//! How many calls a pipeline has: all that there are, and fewer after a connection that ended before its answers came.
//!
//! A server ends a connection whose unread answers exceed its `client-output-buffer-limit`. If all calls were sent again
//! at once, the next connection would end as this one did. To find out that a larger pipeline is too large costs a
//! connection, and what its calls would have done. So the limit grows at once after the first such end, which the network
//! may have caused, and ever more slowly after further ones.

use crate::backend::redis::protocol::call::Sent;

/// With so many calls to a pipeline there is no limit any more.
const ENOUGH: usize = 1024;
/// A connection that ends with so few calls unanswered has not ended because of them.
const FEW: usize = 8;
/// How many times more answers the limit waits for after each further end, before it grows.
const FACTOR: u32 = 8;
/// The most answers that it waits for. After so many answers without a limit, an end is the first again.
const LONGEST: u32 = 4096;

#[derive(Debug, Default)]
pub(super) struct Room {
    /// The largest number of calls, if there is a limit.
    most: Option<usize>,
    /// How many answers it takes until the limit grows.
    patience: u32,
    /// How many there have been since it last changed.
    answers: u32,
    /// The calls that the last pipeline had no room for.
    left: Vec<Sent>,
    /// How many calls have been sent and not answered.
    unanswered: usize,
}

impl Room {
    /// Whether pipelines are limited, so that only one is in flight.
    pub(super) fn is_limited(&self) -> bool {
        self.most.is_some()
    }

    /// The calls of the next pipeline, of these and those that were left before.
    pub(super) fn fill(&mut self, calls: Vec<Sent>) -> Vec<Sent> {
        let mut all = std::mem::take(&mut self.left);
        if all.is_empty() {
            all = calls;
        } else {
            all.extend(calls);
        }
        if let Some(most) = self.most
            && all.len() > most
        {
            self.left = all.split_off(most);
        }
        self.unanswered += all.len();
        all
    }

    /// A pipeline of so many calls was answered.
    pub(super) fn answered(&mut self, calls: usize) {
        self.unanswered = self.unanswered.saturating_sub(calls);
        self.answers = self.answers.saturating_add(1);
        if let Some(most) = self.most
            && self.answers >= self.patience
        {
            self.answers = 0;
            self.most = Some(most + most / 8 + 1).filter(|most| *most < ENOUGH);
        }
    }

    /// The server has ended the connection.
    pub(super) fn ended(&mut self) {
        let unanswered = std::mem::take(&mut self.unanswered);
        if unanswered > FEW {
            self.patience = match self.answers {
                LONGEST.. => 1,
                _ => (self.patience * FACTOR).clamp(1, LONGEST),
            };
            self.answers = 0;
            self.most = Some(unanswered / 2);
        }
    }

    /// There is no connection any more, whoever has ended it. Returns the calls that are not sent any more.
    pub(super) fn broken(&mut self) -> Vec<Sent> {
        self.unanswered = 0;
        std::mem::take(&mut self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::queue::protocol::call::Call;
    use crate::base::clock::Moment;

    fn calls(count: usize) -> Vec<Sent> {
        let call = |_| Sent::new(Call::Ask(Vec::new()), Moment::from_nanos(0));
        (0..count).map(call).collect()
    }

    /// A connection with so many calls, which ends before they are answered.
    fn ends_under(room: &mut Room, count: usize) -> usize {
        room.fill(calls(count));
        room.ended();
        room.broken().len()
    }

    /// Sends what is left and so many more calls, and gets their answers.
    fn exchange(room: &mut Room, more: usize) -> usize {
        let sent = room.fill(calls(more)).len();
        room.answered(sent);
        sent
    }

    // Section: guarantees.md#the-lock-goes-on
    #[test]
    fn pipelines_shrink_while_connections_end_under_them_and_grow_again() {
        let mut room = Room::default();
        assert_eq!(exchange(&mut room, 2_000), 2_000);
        ends_under(&mut room, FEW);
        assert_eq!(exchange(&mut room, 2_000), 2_000);
        ends_under(&mut room, 40);
        for (more, sent) in [(60, 20), (0, 23), (0, 17), (0, 0)] {
            assert_eq!(exchange(&mut room, more), sent);
        }
        for _ in 0..50 {
            exchange(&mut room, 1);
        }
        assert!(!room.is_limited());
        assert_eq!(exchange(&mut room, 2_000), 2_000);
    }

    // Section: guarantees.md#the-lock-goes-on
    #[test]
    fn a_connection_that_we_have_given_up_limits_nothing() {
        let mut room = Room::default();
        room.fill(calls(2_000));
        assert!(room.broken().is_empty());
        assert_eq!(exchange(&mut room, 2_000), 2_000);
        room.ended();
        assert!(!room.is_limited(), "all were answered");
    }

    // Section: guarantees.md#the-lock-goes-on
    #[test]
    fn a_limit_that_was_too_large_before_grows_more_slowly_each_time() {
        let mut room = Room::default();
        ends_under(&mut room, 40);
        for patience in [8, 64, 512, 4096, 4096] {
            let sent = room.most.expect("a limit");
            let left = ends_under(&mut room, sent + 1);
            assert_eq!(left, 1, "the queue decides about it again");
            assert_eq!(room.most, Some(sent / 2));
            room.most = Some(sent);
            for _ in 1..patience {
                exchange(&mut room, 1);
            }
            assert_eq!(room.most, Some(sent));
            exchange(&mut room, 1);
            assert!(room.most > Some(sent), "after {patience} answers");
        }
        room.most = None;
        for _ in 0..LONGEST {
            exchange(&mut room, 1);
        }
        ends_under(&mut room, 40);
        assert_eq!(room.patience, 1, "long ago");
    }
}

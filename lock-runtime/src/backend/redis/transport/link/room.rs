//! How many calls a pipeline has: all that there are, and fewer after a connection that ended before its answers came.
//!
//! A server ends a connection whose unread answers exceed its `client-output-buffer-limit`. If all calls were sent again
//! at once, the next connection would end as this one did.

use crate::backend::redis::protocol::call::Sent;

/// With so many calls to a pipeline there is no limit any more.
const ENOUGH: usize = 1024;
/// A connection that ends with so few calls unanswered has not ended because of them.
const FEW: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Room {
    /// The largest number of calls, if there is a limit.
    most: Option<usize>,
    /// The calls that the last pipeline had no room for.
    left: Vec<Sent>,
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
        all
    }

    /// A pipeline was answered. The limit grows slowly: to find that it is too large costs a connection.
    pub(super) fn answered(&mut self) {
        let grown = self.most.map(|most| most + most / 8 + 1);
        self.most = grown.filter(|most| *most < ENOUGH);
    }

    /// The connection has ended with so many calls unanswered. Returns those that are not sent any more.
    pub(super) fn broken(&mut self, unanswered: usize) -> Vec<Sent> {
        if unanswered > FEW {
            self.most = Some(unanswered / 2);
        }
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

    // Section: guarantees.md#the-lock-goes-on
    #[test]
    fn pipelines_shrink_while_connections_end_under_them_and_grow_again() {
        let mut room = Room::default();
        assert!(room.broken(8).is_empty());
        assert_eq!(room.fill(calls(2_000)).len(), 2_000);
        room.broken(40);
        assert_eq!(room.fill(calls(30)).len(), 20);
        let left = room.broken(20);
        assert_eq!(left.len(), 10, "the queue decides about them again");
        assert_eq!(room.fill(calls(40)).len(), 10);
        for (more, sent) in [(0, 12), (0, 14), (2, 6)] {
            room.answered();
            assert_eq!(room.fill(calls(more)).len(), sent);
        }
        for _ in 0..50 {
            room.answered();
        }
        assert!(!room.is_limited());
        assert_eq!(room.fill(calls(2_000)).len(), 2_000);
    }
}

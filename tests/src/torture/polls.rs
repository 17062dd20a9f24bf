//! Which polls of different holders of a lock ran at the same time, or after somebody else had entered.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    time::Duration,
};

use super::{
    history::{Event, Grant, Kind, Mode},
    lock_name,
};

/// Two holders of which each excludes the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overlap {
    /// Whose body was entered first.
    pub(super) first: Grant,
    pub(super) second: Grant,
    /// When both were seen.
    pub(super) at: Duration,
    /// For how long the poll of the one ran on when that of the other had begun; nothing if it had ended.
    pub(super) lasted: Duration,
    /// Whether the first one's poll ran on for longer than any may, behind the deadline.
    pub(super) overlong: bool,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            first,
            second,
            at,
            lasted,
            ..
        } = self;
        let key = lock_name(first.key);
        if lasted.is_zero() {
            write!(
                f,
                "{key}: {first} was polled after {second} had entered, at {at:?}"
            )
        } else {
            write!(
                f,
                "{key}: a poll of {first} ran on for {lasted:?} when {second} was polled, at {at:?}"
            )
        }
    }
}

/// Finds those among the events of one lock, which are in the order of their times, once for each two holders.
pub(super) fn overlaps(events: &[&Event], margin: Duration) -> Vec<Overlap> {
    let mut order = Order::default();
    let mut running: Vec<&Event> = Vec::new();
    let mut known = HashSet::new();
    let mut found = Vec::new();
    let polls = events
        .iter()
        .filter(|it| matches!(it.kind, Kind::Enter | Kind::Poll));
    for poll in polls {
        running.retain(|it| it.until > poll.at);
        order.enter(poll.grant);
        let beside = beside(poll, &running, &order, margin);
        let overtaken = order.overtaken(poll.grant).map(|by| Overlap {
            first: poll.grant,
            second: by,
            at: poll.at,
            lasted: Duration::ZERO,
            overlong: false,
        });
        for overlap in beside.into_iter().chain(overtaken) {
            if known.insert((overlap.first, overlap.second, overlap.overlong)) {
                found.push(overlap);
            }
        }
        running.push(poll);
    }
    found
}

/// With whose running polls one that begins does not go together.
fn beside(poll: &Event, running: &[&Event], order: &Order, margin: Duration) -> Vec<Overlap> {
    let others = running.iter().filter(|it| it.grant != poll.grant);
    let overlap = |other: &&Event| {
        // A poll that was too long is excused towards those who enter after its lease, and not the other way round.
        let is_first = order.number(other.grant) < order.number(poll.grant);
        let [first, second] = if is_first {
            [other.grant, poll.grant]
        } else {
            [poll.grant, other.grant]
        };
        Overlap {
            first,
            second,
            at: poll.at,
            lasted: other.until.saturating_sub(poll.at),
            overlong: is_first && is_excused(other, poll.at, margin),
        }
    };
    let (sharing, excluded): (Vec<_>, Vec<_>) =
        others.partition(|it| it.grant.mode.shares_with(poll.grant.mode));
    let mut found: Vec<_> = excluded.iter().map(overlap).collect();
    if let Mode::Permits(most) = poll.grant.mode {
        let sharing: Vec<_> = sharing.iter().map(overlap).collect();
        let counted = sharing.iter().filter(|it| !it.overlong);
        if counted.count() >= most as usize {
            found.extend(sharing.into_iter().filter(|it| !it.overlong).take(1));
        }
    }
    found
}

/// Whether another holder may enter at this time, while a poll runs: its lease has ended, as far as is known.
fn is_excused(poll: &Event, at: Duration, margin: Duration) -> bool {
    match poll.deadline {
        Some(deadline) => at > deadline.max(poll.at) + margin,
        None => poll.until.saturating_sub(poll.at) > margin,
    }
}

/// In which order bodies were entered.
#[derive(Default)]
struct Order {
    numbers: HashMap<Grant, usize>,
    /// The last one of each mode.
    last: HashMap<Mode, (usize, Grant)>,
}

impl Order {
    fn enter(&mut self, grant: Grant) {
        let next = self.numbers.len();
        if *self.numbers.entry(grant).or_insert(next) == next {
            self.last.insert(grant.mode, (next, grant));
        }
    }

    fn number(&self, grant: Grant) -> usize {
        self.numbers[&grant]
    }

    /// Who has entered after that one and does not share the lock with it.
    fn overtaken(&self, grant: Grant) -> Option<Grant> {
        let own = self.number(grant);
        let others = self
            .last
            .values()
            .filter(|(_, it)| !it.mode.shares_with(grant.mode));
        let latest = others.max_by_key(|(number, _)| *number);
        latest
            .filter(|(number, _)| *number > own)
            .map(|(_, it)| *it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: Duration = Duration::from_millis(50);

    fn found(mode: Mode, polls: &[(u32, u64, u64)]) -> Vec<(u32, u32, bool)> {
        let mut entered = HashSet::new();
        let events: Vec<_> = polls
            .iter()
            .map(|(number, at, until)| {
                let first = entered.insert(*number);
                let kind = if first { Kind::Enter } else { Kind::Poll };
                Event::poll(*number, mode, kind, *at, *until)
            })
            .collect();
        let events: Vec<_> = events.iter().collect();
        let found = overlaps(&events, MARGIN);
        let number = |grant: Grant| u32::try_from(grant.fence).expect("a small number");
        let found = found.iter();
        found
            .map(|it| (number(it.first), number(it.second), it.overlong))
            .collect()
    }

    #[test]
    fn polls_one_after_the_other_do_not_overlap() {
        let polls = [(1, 0, 10), (1, 20, 30), (2, 30, 40), (3, 41, 90)];
        assert_eq!(found(Mode::Alone, &polls), []);
    }

    #[test]
    fn a_poll_that_runs_on_when_another_holder_enters_is_found() {
        let polls = [(1, 0, 10), (1, 20, 60), (2, 59, 65), (2, 70, 71)];
        assert_eq!(found(Mode::Alone, &polls), [(1, 2, false)]);
    }

    #[test]
    fn a_poll_that_is_longer_than_the_margin_is_told_apart() {
        let polls = [(1, 0, 10), (1, 20, 71), (2, 60, 65)];
        assert_eq!(found(Mode::Alone, &polls), [(1, 2, true)]);
    }

    #[test]
    fn a_poll_is_not_excused_before_its_lease_ends_however_long_it_is() {
        let second = Event::poll(2, Mode::Alone, Kind::Enter, 350, 351);
        for (deadline, excused) in [(299, true), (300, false), (10, true)] {
            let first = Event::poll(1, Mode::Alone, Kind::Enter, 20, 400).under(deadline);
            let found = overlaps(&[&first, &second], MARGIN);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].overlong, excused, "{deadline}");
        }
    }

    #[test]
    fn a_poll_after_another_holder_has_entered_is_found_however_long_it_is() {
        let polls = [(1, 0, 10), (2, 20, 25), (1, 30, 31)];
        assert_eq!(found(Mode::Alone, &polls), [(1, 2, false)]);
        let polls = [(1, 0, 10), (2, 20, 90), (1, 30, 31)];
        assert_eq!(found(Mode::Alone, &polls), [(1, 2, false)]);
    }

    #[test]
    fn readers_overlap_each_other_and_no_writer() {
        let polls = [(1, 0, 40), (2, 10, 40), (3, 20, 30), (1, 45, 46)];
        assert_eq!(found(Mode::Read, &polls), []);
        let reader = Event::poll(1, Mode::Read, Kind::Enter, 0, 40);
        let writer = Event::poll(2, Mode::Alone, Kind::Enter, 30, 31);
        let found = overlaps(&[&reader, &writer], MARGIN);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn no_more_than_the_permits_overlap() {
        let polls = [(1, 0, 40), (2, 10, 40), (3, 20, 30), (4, 30, 31)];
        assert_eq!(found(Mode::Permits(3), &polls), []);
        let polls = [(1, 0, 40), (2, 10, 40), (3, 20, 30), (4, 29, 31)];
        assert_eq!(found(Mode::Permits(3), &polls).len(), 1);
    }
}

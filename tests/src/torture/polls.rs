//! Which polls of different holders of a lock ran at the same time, or after somebody else had entered.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use super::history::{Event, Grant, Kind, Mode};

/// Two holders of which each excludes the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overlap {
    /// Whose body was entered first.
    pub(super) first: Grant,
    pub(super) second: Grant,
    /// When both were seen.
    pub(super) at: Duration,
    /// How long both polls ran.
    pub(super) lasted: Duration,
    /// Whether the first one's poll was longer than any may be.
    pub(super) overlong: bool,
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
        // A poll that was too long is excused towards those who enter after it, and not the other way round.
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
            lasted: other.until.min(poll.until).saturating_sub(poll.at),
            overlong: is_first && other.until.saturating_sub(other.at) > margin,
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

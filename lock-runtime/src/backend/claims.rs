//! Claims: acquisitions as the state machine of a store sees them, and their news for the
//! driver.

use std::collections::VecDeque;
use std::error::Error;

use crate::backend::Outcome;
use crate::backend::token::{Token, Tokens};
use crate::base::agenda::Agenda;
use crate::base::clock::Moment;
use crate::base::numbers::Numbered;
use crate::types::error::Cause;
use crate::types::terms::LeaseId;

/// Why a release fails for the driver that nobody has answered in time.
pub(crate) const UNCONFIRMED: &str = "the release was not confirmed before the lease ended";

/// All claims of a state machine, their due times, and the outcomes to be polled. `C` is the
/// store's own part of a claim.
#[derive(Debug)]
pub(crate) struct Claims<C> {
    table: Numbered<LeaseId, Slot<C>>,
    agenda: Agenda<LeaseId>,
    outcomes: VecDeque<Outcome>,
    pub(crate) tokens: Tokens,
}

#[derive(Debug)]
struct Slot<C> {
    claim: C,
    /// Its position in the agenda.
    due: Option<Moment>,
    turn: u64,
    /// Whether the driver knows how it ends, and waits for it no longer.
    ended: bool,
}

/// A part of a claim's life. Answers to questions of an earlier part are out of date. On
/// Redis, replies carry a token instead, which passes to another claim with the lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Turn {
    pub(crate) id: LeaseId,
    number: u64,
}

impl<C> Default for Claims<C> {
    fn default() -> Self {
        Self {
            table: Numbered::default(),
            agenda: Agenda::default(),
            outcomes: VecDeque::new(),
            tokens: Tokens::default(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as maps have it")]
impl<C> Claims<C> {
    pub(crate) fn insert(&mut self, id: LeaseId, claim: C) {
        let slot = Slot {
            claim,
            due: None,
            turn: 0,
            ended: false,
        };
        self.table.insert(id, slot);
    }

    #[cfg(any(feature = "zookeeper", feature = "etcd"))]
    pub(crate) fn contains(&self, id: LeaseId) -> bool {
        self.table.contains_key(&id)
    }

    pub(crate) fn get(&self, id: &LeaseId) -> Option<&C> {
        self.table.get(id).map(|slot| &slot.claim)
    }

    pub(crate) fn get_mut(&mut self, id: &LeaseId) -> Option<&mut C> {
        self.table.get_mut(id).map(|slot| &mut slot.claim)
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Those that are meant, in the order in which they were asked for.
    pub(crate) fn ids(&self, meant: impl Fn(&C) -> bool) -> Vec<LeaseId> {
        let slots = self.table.iter().filter(|(_, slot)| meant(&slot.claim));
        let mut ids: Vec<_> = slots.map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    }

    /// Forgets a claim, whose end the driver knows or has no interest in.
    pub(crate) fn remove(&mut self, id: &LeaseId) -> Option<C> {
        self.take(*id).map(|slot| slot.claim)
    }

    fn take(&mut self, id: LeaseId) -> Option<Slot<C>> {
        let slot = self.table.remove(&id)?;
        if let Some(due) = slot.due {
            self.agenda.remove(due, id);
        }
        Some(slot)
    }

    /// A token for a claim, which fails if there is none.
    pub(crate) fn fresh_token(&mut self, id: LeaseId) -> Option<Token> {
        match self.tokens.next() {
            Ok(token) => Some(token),
            Err(error) => {
                let why = format!("no random numbers: {error}");
                let cause = Cause::from(Box::<dyn Error + Send + Sync>::from(why));
                self.retire(Outcome::Failed { id, cause });
                None
            }
        }
    }

    pub(crate) fn next_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// Leaves an outcome for the driver, which hears once how a claim ends.
    pub(crate) fn report(&mut self, outcome: Outcome) {
        let slot = outcome.ended().and_then(|id| self.table.get_mut(&id));
        let knows = slot.is_some_and(|slot| std::mem::replace(&mut slot.ended, true));
        if !knows {
            self.outcomes.push_back(outcome);
        }
    }

    /// Whether the driver knows how a claim ends.
    pub(crate) fn has_ended(&self, id: LeaseId) -> bool {
        self.table.get(&id).is_some_and(|slot| slot.ended)
    }

    /// The driver waits again for the end of a claim, of which it knew one.
    #[cfg(feature = "etcd")]
    pub(crate) fn resume(&mut self, id: LeaseId) {
        if let Some(slot) = self.table.get_mut(&id) {
            slot.ended = false;
        }
    }

    /// Forgets a claim that ends with this outcome, which the driver hears unless it knows.
    pub(crate) fn retire(&mut self, outcome: Outcome) -> Option<C> {
        let slot = outcome.ended().and_then(|id| self.take(id));
        if !slot.as_ref().is_some_and(|slot| slot.ended) {
            self.outcomes.push_back(outcome);
        }
        slot.map(|slot| slot.claim)
    }

    /// Something is to be done about a claim at this moment or before.
    pub(crate) fn schedule(&mut self, at: Moment, id: LeaseId) {
        let due = self.table.get(&id).and_then(|slot| slot.due);
        if due.is_none_or(|due| at < due) {
            self.reschedule(Some(at), id);
        }
    }

    /// Something is to be done about a claim at this moment and not before, or nothing.
    pub(crate) fn reschedule(&mut self, at: Option<Moment>, id: LeaseId) {
        let Some(slot) = self.table.get_mut(&id) else {
            return;
        };
        if let Some(due) = std::mem::replace(&mut slot.due, at) {
            self.agenda.remove(due, id);
        }
        if let Some(at) = at {
            self.agenda.insert(at, id);
        }
    }

    /// The next one that is due at `now`; it is due no longer.
    pub(crate) fn due(&mut self, now: Moment) -> Option<LeaseId> {
        let id = self.agenda.due(now)?;
        if let Some(slot) = self.table.get_mut(&id) {
            slot.due = None;
        }
        Some(id)
    }

    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        self.agenda.next()
    }

    /// The present turn of a claim.
    pub(crate) fn turn(&self, id: LeaseId) -> Turn {
        let number = self.table.get(&id).map_or(0, |slot| slot.turn);
        Turn { id, number }
    }

    /// Begins another one.
    pub(crate) fn next_turn(&mut self, id: LeaseId) -> Turn {
        if let Some(slot) = self.table.get_mut(&id) {
            slot.turn += 1;
        }
        self.turn(id)
    }

    /// The claim, if it has begun no other turn since this one.
    pub(crate) fn in_turn(&mut self, turn: Turn) -> Option<&mut C> {
        let slot = self.table.get_mut(&turn.id);
        let slot = slot.filter(|slot| slot.turn == turn.number)?;
        Some(&mut slot.claim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: LeaseId = LeaseId(1);

    fn claims() -> Claims<char> {
        let mut claims = Claims::default();
        claims.insert(ID, 'a');
        claims
    }

    fn released(held: bool) -> Outcome {
        let (id, result) = (ID, Ok(held));
        Outcome::Released { id, result }
    }

    #[test]
    fn the_driver_hears_once_how_a_claim_ends() {
        let mut claims = claims();
        claims.report(released(true));
        claims.report(released(false));
        assert!(claims.has_ended(ID));
        assert_eq!(claims.retire(released(false)), Some('a'));
        let outcomes = std::iter::from_fn(|| claims.next_outcome());
        assert!(matches!(
            outcomes.collect::<Vec<_>>()[..],
            [Outcome::Released {
                result: Ok(true),
                ..
            }]
        ));
        claims.retire(released(false));
        assert!(claims.next_outcome().is_some(), "of an unknown claim");
    }

    #[test]
    fn a_claim_is_due_once_at_the_earliest_moment_and_not_after_its_end() {
        let at = Moment::from_nanos;
        let mut claims = claims();
        for nanos in [5, 3, 7] {
            claims.schedule(at(nanos), ID);
        }
        assert_eq!(
            (claims.due(at(2)), claims.next_wakeup()),
            (None, Some(at(3)))
        );
        assert_eq!((claims.due(at(9)), claims.due(at(9))), (Some(ID), None));
        claims.schedule(at(3), ID);
        claims.reschedule(Some(at(8)), ID);
        assert_eq!(claims.next_wakeup(), Some(at(8)));
        claims.remove(&ID);
        assert_eq!((claims.next_wakeup(), claims.due(at(9))), (None, None));
        claims.schedule(at(1), ID);
        assert_eq!(claims.next_wakeup(), None);
    }

    #[test]
    fn an_answer_counts_in_the_turn_in_which_was_asked() {
        let mut claims = claims();
        let first = claims.next_turn(ID);
        assert_eq!(claims.turn(ID), first);
        assert_eq!(claims.in_turn(first), Some(&mut 'a'));
        let second = claims.next_turn(ID);
        assert_eq!(claims.in_turn(first), None);
        assert_eq!(claims.in_turn(second), Some(&mut 'a'));
        claims.remove(&ID);
        assert_eq!(claims.in_turn(second), None);
    }

    #[test]
    fn claims_are_gone_through_in_the_order_in_which_they_were_asked_for() {
        let mut claims = Claims::default();
        for id in (0..100).rev() {
            claims.insert(LeaseId(id), id);
        }
        let even: Vec<_> = (0..50).map(|it| LeaseId(2 * it)).collect();
        assert_eq!(claims.ids(|id| id % 2 == 0), even);
    }
}

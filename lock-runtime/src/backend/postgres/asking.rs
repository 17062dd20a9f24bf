//! Which calls wait before they are sent: while others that take rows are not answered. The server carries out the calls of a
//! connection one after the other, and each about a lock whose row somebody keeps takes the better part of a second; behind
//! many of them, renewals of other locks would come too late.

use std::collections::HashSet;

use crate::backend::sql::batch::{Batch, batches, takes_row};
use crate::backend::sql::steps::{Call, Sent};
use crate::types::key::LockKey;

/// The unanswered calls that take rows.
#[derive(Debug)]
pub(super) struct Asking {
    /// The locks that they are about: one call takes the row of a lock at a time.
    locks: HashSet<LockKey>,
    unanswered: usize,
    /// How many there may be: one after a call that could not have its row, and one more with each that could.
    most: usize,
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            locks: HashSet::new(),
            unanswered: 0,
            most: usize::MAX,
        }
    }
}

impl Asking {
    /// Puts the calls of a turn together, except for those that wait.
    pub(super) fn batches(&mut self, calls: Vec<Sent>, apart: bool) -> (Vec<Batch>, Vec<Sent>) {
        let (mut later, now): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|it| self.holds_up(&it.call));
        let mut go = Vec::new();
        for batch in batches(now, apart) {
            if batch.calls().iter().any(|it| self.holds_up(&it.call)) {
                later.extend(batch.into_calls());
            } else {
                self.began(&batch);
                go.push(batch);
            }
        }
        (go, later)
    }

    fn holds_up(&self, call: &Call) -> bool {
        takes_row(call).is_some_and(|key| self.unanswered >= self.most || self.locks.contains(key))
    }

    fn began(&mut self, batch: &Batch) {
        let locks = locks(batch);
        self.unanswered += usize::from(!locks.is_empty());
        self.locks.extend(locks.into_iter().cloned());
    }

    /// A batch is answered, perhaps refused, or was never sent.
    pub(super) fn ended(&mut self, batch: &Batch, refused: bool) {
        let locks = locks(batch);
        if locks.is_empty() {
            return;
        }
        self.unanswered = self.unanswered.saturating_sub(1);
        self.most = if refused {
            1
        } else {
            self.most.saturating_add(1)
        };
        for key in locks {
            self.locks.remove(key);
        }
    }
}

/// The locks whose rows a batch takes.
fn locks(batch: &Batch) -> HashSet<&LockKey> {
    let calls = batch.calls().iter();
    calls.filter_map(|it| takes_row(&it.call)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::backend::queue::protocol::call::{Bearer, Company};
    use crate::backend::token::Token;
    use crate::base::clock::Moment;
    use crate::types::kind::Kind;
    use crate::types::terms::{LeaseId, Terms};

    fn bearer(key: &str) -> Bearer {
        let terms = Terms::of(LeaseId(1), key, Duration::from_secs(10));
        Bearer::new(Token::new().expect("random numbers"), terms.into())
    }

    fn acquire(bearer: &Bearer) -> Sent {
        let call = Call::Acquire {
            bearer: bearer.clone(),
            position: None,
            company: Company::Unsaid,
        };
        sent(call)
    }

    fn sent(call: Call) -> Sent {
        Sent::new(call, Moment::from_nanos(1))
    }

    /// How many calls go, and how many wait.
    fn split(asking: &mut Asking, calls: Vec<Sent>, apart: bool) -> (Vec<Batch>, Vec<Sent>) {
        let all = calls.len();
        let (go, later) = asking.batches(calls, apart);
        let gone: usize = go.iter().map(|it| it.calls().len()).sum();
        assert_eq!(gone + later.len(), all, "none is lost");
        (go, later)
    }

    // Section: guarantees.md#the-lock-goes-on
    #[test]
    fn one_call_waits_for_the_row_of_a_lock_at_a_time() {
        let mut asking = Asking::default();
        let calls = ["k", "k", "k", "l"].map(|it| acquire(&bearer(it)));
        let (go, later) = split(&mut asking, calls.into(), true);
        assert_eq!((go.len(), later.len()), (2, 2));
        let (_, later) = split(&mut asking, later, true);
        assert_eq!(later.len(), 2);
        asking.ended(&go[0], false);
        let (_, later) = split(&mut asking, later, true);
        assert_eq!(later.len(), 1);
    }

    // Section: guarantees.md#the-lock-goes-on
    #[test]
    fn one_call_waits_for_a_row_once_another_could_not_have_its_row() {
        let mut asking = Asking::default();
        let acquires = |keys: &str| {
            let keys = keys.chars().map(String::from);
            keys.map(|key| acquire(&bearer(&key))).collect::<Vec<_>>()
        };
        let (go, _) = split(&mut asking, acquires("abc"), true);
        asking.ended(&go[0], true);
        assert_eq!(split(&mut asking, acquires("def"), true).0.len(), 0);
        for batch in &go[1..] {
            asking.ended(batch, true);
        }
        let (go, later) = split(&mut asking, acquires("def"), true);
        assert_eq!((go.len(), later.len()), (1, 2));
        // Its row is free: the answer makes place for two.
        asking.ended(&go[0], false);
        assert_eq!(split(&mut asking, acquires("ghi"), true).0.len(), 2);
    }

    #[test]
    fn one_batch_takes_the_row_once() {
        let mut asking = Asking::default();
        let calls = (0..5).map(|_| acquire(&bearer("k"))).collect();
        assert_eq!(split(&mut asking, calls, false).1.len(), 0);
        let next = vec![acquire(&bearer("k"))];
        assert_eq!(split(&mut asking, next, false).1.len(), 1);
    }

    #[test]
    fn all_that_takes_the_row_counts() {
        let ask = |bearer| Call::Ask(vec![bearer]);
        let renew = |bearer| Call::Renew { bearer, note: None };
        let shared = || {
            let mut bearer = bearer("k");
            Arc::make_mut(&mut bearer.terms).kind = Kind::Read;
            bearer
        };
        let others: [(&dyn Fn() -> Call, usize); 4] = [
            (&|| ask(bearer("k")), 1),
            (&|| Call::Leave(bearer("k")), 1),
            (&|| renew(shared()), 1),
            (&|| renew(bearer("k")), 0),
        ];
        for (call, waiting) in others {
            let mut asking = Asking::default();
            drop(split(&mut asking, vec![acquire(&bearer("k"))], true));
            let (_, later) = split(&mut asking, vec![sent(call())], true);
            assert_eq!(later.len(), waiting);
        }
    }

    #[test]
    fn the_calls_of_a_lock_keep_their_order() {
        let (mut asking, bearer) = (Asking::default(), bearer("k"));
        drop(split(&mut asking, vec![acquire(&bearer)], true));
        let calls = vec![acquire(&bearer), sent(Call::Leave(bearer))];
        let (_, later) = split(&mut asking, calls, false);
        assert!(matches!(later[0].call, Call::Acquire { .. }));
        assert!(matches!(later[1].call, Call::Leave(_)));
    }
}

//! Which calls wait before they are sent: while others that take rows are not answered. The server carries out the calls of a
//! connection one after the other, and each about a lock whose row somebody keeps takes 0.7 s or more; behind many of them,
//! renewals of other locks would come too late.

use std::collections::{HashMap, HashSet};

use crate::backend::sql::batch::{Batch, batches, takes_row};
use crate::backend::sql::steps::{Call, Sent};
use crate::types::key::LockKey;

/// How many unanswered calls may take the row of one lock at first, and after many answers: few, since all of them wait if
/// somebody begins to keep the row.
const FIRST: usize = 3;
const MOST: usize = 8;

/// The unanswered calls that take rows.
#[derive(Debug)]
pub(super) struct Asking {
    locks: HashMap<LockKey, Limit>,
    /// Of all locks together. Renewals do not count: one must not wait for those of other locks.
    all: Limit,
}

/// How many calls are unanswered, and how many may be: one after a call that could not have its row, and one more with each
/// that could.
#[derive(Debug)]
struct Limit {
    unanswered: usize,
    most: usize,
}

impl Limit {
    fn is_reached(&self) -> bool {
        self.unanswered >= self.most
    }

    fn ended(&mut self, waited: bool) {
        self.unanswered = self.unanswered.saturating_sub(1);
        self.most = if waited {
            1
        } else {
            self.most.saturating_add(1)
        };
    }
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            locks: HashMap::new(),
            all: Limit {
                unanswered: 0,
                most: usize::MAX,
            },
        }
    }
}

impl Asking {
    /// On a new connection, after one that broke while this batch was to be carried out: it may have waited for a row.
    pub(super) fn after(broken: Option<&Batch>) -> Self {
        let mut this = Self::default();
        if broken.is_some_and(counts) {
            this.all.most = 1;
        }
        this
    }

    /// Puts the calls of a turn together, except for those that wait. After one that could not have its row, those of several
    /// locks go `apart`, until it is likely that the others can.
    pub(super) fn batches(&mut self, calls: Vec<Sent>, apart: bool) -> (Vec<Batch>, Vec<Sent>) {
        let (mut later, now): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|it| self.holds_up(&it.call));
        let (renewals, others): (Vec<_>, Vec<_>) =
            now.into_iter().partition(|it| is_renewal(&it.call));
        let others = batches(others, apart || self.all.most < MOST);
        let mut go = Vec::new();
        for batch in batches(renewals, apart).into_iter().chain(others) {
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
        takes_row(call).is_some_and(|key| {
            let of_lock = self.locks.get(key);
            of_lock.is_some_and(Limit::is_reached) || !is_renewal(call) && self.all.is_reached()
        })
    }

    fn began(&mut self, batch: &Batch) {
        for key in locks(batch) {
            let first = Limit {
                unanswered: 0,
                most: FIRST,
            };
            self.locks.entry(key.clone()).or_insert(first).unanswered += 1;
        }
        self.all.unanswered += usize::from(counts(batch));
    }

    /// A batch is answered, perhaps that it has `waited` in vain, or was never sent.
    pub(super) fn ended(&mut self, batch: &Batch, waited: bool) {
        for key in locks(batch) {
            let Some(limit) = self.locks.get_mut(key) else {
                continue;
            };
            limit.ended(waited);
            limit.most = limit.most.min(MOST);
            if limit.unanswered == 0 && !waited {
                self.locks.remove(key);
            }
        }
        if counts(batch) {
            self.all.ended(waited);
        }
    }
}

/// The locks whose rows a batch takes.
fn locks(batch: &Batch) -> HashSet<&LockKey> {
    let calls = batch.calls().iter();
    calls.filter_map(|it| takes_row(&it.call)).collect()
}

/// Whether it counts among the calls of all locks.
fn counts(batch: &Batch) -> bool {
    let mut calls = batch.calls().iter();
    calls.any(|it| takes_row(&it.call).is_some() && !is_renewal(&it.call))
}

fn is_renewal(call: &Call) -> bool {
    matches!(call, Call::Renew { .. })
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

    fn reader(key: &str) -> Bearer {
        let mut bearer = bearer(key);
        Arc::make_mut(&mut bearer.terms).kind = Kind::Read;
        bearer
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

    fn acquires(keys: &str) -> Vec<Sent> {
        let keys = keys.chars().map(String::from);
        keys.map(|key| acquire(&bearer(&key))).collect()
    }

    // Section: guarantees.md#the-lock-goes-on
    #[test]
    fn few_calls_wait_for_the_row_of_a_lock_at_a_time() {
        let mut asking = Asking::default();
        let (go, later) = split(&mut asking, acquires("kkkkkl"), true);
        assert_eq!((go.len(), later.len()), (FIRST + 1, 2));
        // Its row is free: an answer makes place for two.
        asking.ended(&go[0], false);
        let (mut went, later) = split(&mut asking, later, true);
        assert_eq!((went.len(), later.len()), (2, 0));
        for _ in 0..MOST {
            for batch in went {
                asking.ended(&batch, false);
            }
            went = split(&mut asking, acquires("kk"), true).0;
        }
        let unanswered = went.len() + FIRST - 1;
        let (went, _) = split(&mut asking, acquires("kkkkkkkkkk"), true);
        assert_eq!(unanswered + went.len(), MOST);
    }

    // Section: guarantees.md#the-lock-goes-on
    #[test]
    fn one_call_waits_for_a_row_once_another_could_not_have_its_row() {
        let mut asking = Asking::default();
        let (go, _) = split(&mut asking, acquires("abc"), true);
        asking.ended(&go[0], true);
        assert_eq!(split(&mut asking, acquires("def"), true).0.len(), 0);
        for batch in &go[1..] {
            asking.ended(batch, true);
        }
        // One by one, so that one row costs one call.
        let (go, later) = split(&mut asking, acquires("def"), false);
        assert_eq!((go.len(), later.len()), (1, 2));
        assert!(matches!(go[0], Batch::One(_)));
        // Its row is free: the answer makes place for two.
        asking.ended(&go[0], false);
        let (go, _) = split(&mut asking, acquires("ghi"), true);
        assert_eq!(go.len(), 2);
        for batch in go {
            asking.ended(&batch, false);
        }
    }

    /// Those of two locks, each time anew, would keep a third one from being renewed.
    // Section: guarantees.md#the-lock-goes-on
    #[test]
    fn renewals_of_readers_do_not_wait_for_other_locks() {
        let mut asking = Asking::default();
        let (go, _) = split(&mut asking, acquires("a"), true);
        asking.ended(&go[0], true);
        drop(split(&mut asking, acquires("b"), true));
        let renewals = ["r", "s"].map(|key| {
            let (bearer, note) = (reader(key), None);
            sent(Call::Renew { bearer, note })
        });
        assert_eq!(split(&mut asking, renewals.into(), true).0.len(), 2);
    }

    #[test]
    fn one_batch_takes_the_row_once() {
        let mut asking = Asking::default();
        assert_eq!(split(&mut asking, acquires("kkkkk"), false).1.len(), 0);
        let turns = (0..FIRST).map(|_| split(&mut asking, acquires("k"), false).1.len());
        assert_eq!(turns.collect::<Vec<_>>(), [0, 0, 1]);
    }

    #[test]
    fn all_that_takes_the_row_counts() {
        let ask = |bearer| Call::Ask(vec![bearer]);
        let renew = |bearer| Call::Renew { bearer, note: None };
        let others: [(&dyn Fn() -> Call, usize); 4] = [
            (&|| ask(bearer("k")), 1),
            (&|| Call::Leave(bearer("k")), 1),
            (&|| renew(reader("k")), 1),
            (&|| renew(bearer("k")), 0),
        ];
        for (call, waiting) in others {
            let mut asking = Asking::default();
            drop(split(&mut asking, acquires("kkk"), true));
            let (_, later) = split(&mut asking, vec![sent(call())], true);
            assert_eq!(later.len(), waiting);
        }
    }

    #[test]
    fn the_calls_of_a_lock_keep_their_order() {
        let (mut asking, bearer) = (Asking::default(), bearer("k"));
        drop(split(&mut asking, acquires("kkk"), true));
        let calls = vec![acquire(&bearer), sent(Call::Leave(bearer))];
        let (_, later) = split(&mut asking, calls, false);
        assert!(matches!(later[0].call, Call::Acquire { .. }));
        assert!(matches!(later[1].call, Call::Leave(_)));
    }
}

//! Which calls wait before they are sent: while several that take the row of their lock are not answered. The server carries
//! out the calls of a connection one after the other, and each about a lock whose row somebody keeps takes a second; behind
//! many of them, renewals of other locks would come too late.

use std::collections::{HashMap, HashSet};

use crate::backend::sql::batch::{Batch, batches};
use crate::backend::sql::steps::{Call, Sent};
use crate::types::key::LockKey;
use crate::types::kind::Kind;

/// How many unanswered calls may take the row of one lock at first, and after one that could not have it. Each answer allows
/// one more.
const LEAST: usize = 3;

/// The locks whose rows unanswered calls take.
#[derive(Debug, Default)]
pub(super) struct Asking(HashMap<LockKey, Asked>);

#[derive(Debug)]
struct Asked {
    unanswered: usize,
    most: usize,
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

    /// Whether a call waits, since too many about its lock are not answered.
    fn holds_up(&self, call: &Call) -> bool {
        let asked = takes_row(call).and_then(|key| self.0.get(key));
        asked.is_some_and(|it| it.unanswered >= it.most)
    }

    fn began(&mut self, batch: &Batch) {
        for key in locks(batch) {
            let first = Asked {
                unanswered: 0,
                most: LEAST,
            };
            self.0.entry(key.clone()).or_insert(first).unanswered += 1;
        }
    }

    /// A batch is answered, perhaps refused, or was never sent.
    pub(super) fn ended(&mut self, batch: &Batch, refused: bool) {
        for key in locks(batch) {
            let Some(asked) = self.0.get_mut(key) else {
                continue;
            };
            asked.unanswered = asked.unanswered.saturating_sub(1);
            asked.most = if refused { LEAST } else { asked.most + 1 };
            if asked.unanswered == 0 {
                self.0.remove(key);
            }
        }
    }
}

/// The locks whose rows a batch takes.
fn locks(batch: &Batch) -> HashSet<&LockKey> {
    let calls = batch.calls().iter();
    calls.filter_map(|it| takes_row(&it.call)).collect()
}

/// The lock of a call that takes its row, of which a connection may have many.
fn takes_row(call: &Call) -> Option<&LockKey> {
    match call {
        Call::Acquire { .. } | Call::Ask(_) | Call::Leave(_) => call.key(),
        Call::Renew { bearer, .. }
        | Call::Release { bearer, .. }
        | Call::Shorten { bearer, .. } => {
            (bearer.terms.kind != Kind::Exclusive).then_some(&bearer.terms.key)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::backend::queue::protocol::call::{Bearer, Company};
    use crate::backend::token::Token;
    use crate::base::clock::Moment;
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
    fn few_calls_wait_for_the_row_of_a_lock_at_a_time() {
        let mut asking = Asking::default();
        let calls = ["k"; 5].into_iter().chain(["l"]);
        let calls = calls.map(|it| acquire(&bearer(it))).collect();
        let (go, later) = split(&mut asking, calls, true);
        assert_eq!((go.len(), later.len()), (LEAST + 1, 2));
        let (_, later) = split(&mut asking, later, true);
        assert_eq!(later.len(), 2);
        // Its row is free: an answer makes place for two.
        asking.ended(&go[0], false);
        let (went, later) = split(&mut asking, later, true);
        assert_eq!((went.len(), later.len()), (2, 0));
        // Somebody keeps it.
        asking.ended(&go[1], true);
        let again = ["k"; 2].map(|it| acquire(&bearer(it)));
        let (_, later) = split(&mut asking, again.into(), true);
        assert_eq!(later.len(), 2);
        for batch in go[2..].iter().chain(&went) {
            asking.ended(batch, true);
        }
        let (_, later) = split(&mut asking, later, true);
        assert!(later.is_empty());
    }

    #[test]
    fn one_batch_takes_the_row_once() {
        let mut asking = Asking::default();
        let calls = (0..5).map(|_| acquire(&bearer("k"))).collect();
        assert_eq!(split(&mut asking, calls, false).1.len(), 0);
        let turns = (0..LEAST).map(|_| vec![acquire(&bearer("k"))]);
        let turns = turns.map(|turn| split(&mut asking, turn, false).1.len());
        assert_eq!(turns.collect::<Vec<_>>(), [0, 0, 1]);
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
            let acquires = (0..LEAST).map(|_| acquire(&bearer("k"))).collect();
            drop(split(&mut asking, acquires, true));
            let (_, later) = split(&mut asking, vec![sent(call())], true);
            assert_eq!(later.len(), waiting);
        }
    }

    #[test]
    fn the_calls_of_a_lock_keep_their_order() {
        let (mut asking, bearer) = (Asking::default(), bearer("k"));
        let acquires = (0..LEAST).map(|_| acquire(&bearer)).collect();
        drop(split(&mut asking, acquires, true));
        let calls = vec![acquire(&bearer), sent(Call::Leave(bearer))];
        let (_, later) = split(&mut asking, calls, false);
        assert!(matches!(later[0].call, Call::Acquire { .. }));
        assert!(matches!(later[1].call, Call::Leave(_)));
    }
}

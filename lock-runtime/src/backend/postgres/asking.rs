//! Which acquires wait before they are sent: while several calls about their lock are not answered. The server carries out
//! the calls of a connection one after the other, and each about a lock whose row somebody keeps takes a second; behind
//! many of them, renewals of other locks would come too late.

use std::collections::{HashMap, HashSet};

use crate::backend::sql::batch::{Batch, batches};
use crate::backend::sql::steps::{Call, Sent};
use crate::backend::token::Token;
use crate::types::key::LockKey;

/// How many unanswered calls may ask about one lock. Fewer would cost a lock that is wanted by many.
const MOST: usize = 3;

/// How many unanswered calls ask about each lock.
#[derive(Debug, Default)]
pub(super) struct Asking(HashMap<LockKey, usize>);

impl Asking {
    /// Puts the calls of a turn together, except for those that wait. Those of one token keep their order.
    pub(super) fn batches(&mut self, calls: Vec<Sent>, apart: bool) -> (Vec<Batch>, Vec<Sent>) {
        let mut tokens = HashSet::new();
        let (mut later, now): (Vec<_>, Vec<_>) = calls.into_iter().partition(|it| {
            let waits = self.holds_up(&it.call, &tokens);
            tokens.extend(token(&it.call).filter(|_| waits));
            waits
        });
        let mut go = Vec::new();
        for batch in batches(now, apart) {
            let calls = || batch.calls().iter().map(|it| &it.call);
            if calls().any(|it| self.holds_up(it, &tokens)) {
                tokens.extend(calls().filter_map(token));
                later.extend(batch.into_calls());
            } else {
                for key in locks(&batch) {
                    *self.0.entry(key.clone()).or_default() += 1;
                }
                go.push(batch);
            }
        }
        (go, later)
    }

    /// Whether a call waits, since too many about its lock are not answered, or one of its token waits.
    fn holds_up(&self, call: &Call, waiting: &HashSet<Token>) -> bool {
        let asked = asks_about(call).and_then(|key| self.0.get(key));
        asked.is_some_and(|it| *it >= MOST) || token(call).is_some_and(|it| waiting.contains(&it))
    }

    /// A batch is answered, or never will be.
    pub(super) fn ended(&mut self, batch: &Batch) {
        for key in locks(batch) {
            if let Some(asked) = self.0.get_mut(key) {
                *asked -= 1;
                if *asked == 0 {
                    self.0.remove(key);
                }
            }
        }
    }
}

/// The locks that a batch asks about.
fn locks(batch: &Batch) -> HashSet<&LockKey> {
    let calls = batch.calls().iter();
    calls.filter_map(|it| asks_about(&it.call)).collect()
}

fn asks_about(call: &Call) -> Option<&LockKey> {
    match call {
        Call::Acquire { .. } | Call::Ask(_) => call.key(),
        _ => None,
    }
}

/// The token of a call that must not overtake another one of it.
fn token(call: &Call) -> Option<Token> {
    match call {
        Call::Acquire { bearer, .. } | Call::Leave(bearer) => Some(bearer.token),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
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
    fn few_calls_about_a_lock_wait_for_its_row_at_a_time() {
        for (apart, waiting) in [(false, 0), (true, 2)] {
            let mut asking = Asking::default();
            let calls = ["k"; 5].into_iter().chain(["l"]);
            let calls = calls.map(|it| acquire(&bearer(it))).collect();
            let (go, later) = split(&mut asking, calls, apart);
            assert_eq!(later.len(), waiting);
            let turns = (0..MOST).map(|_| ["k", "m"].map(|it| acquire(&bearer(it))));
            let waiting: Vec<_> = turns
                .map(|turn| split(&mut asking, turn.into(), apart).1.len())
                .collect();
            let last = if apart { [1; MOST] } else { [0, 0, 1] };
            assert_eq!(waiting, last);
            for batch in go {
                asking.ended(&batch);
            }
            let (_, later) = split(&mut asking, later, apart);
            assert!(later.is_empty());
        }
    }

    #[test]
    fn waiters_who_ask_count_as_newcomers_do() {
        let mut asking = Asking::default();
        let asks = (0..MOST).map(|_| sent(Call::Ask(vec![bearer("k")])));
        let calls = asks.chain([acquire(&bearer("k"))]).collect();
        let (go, later) = split(&mut asking, calls, false);
        assert_eq!((go.len(), later.len()), (MOST, 1));
    }

    #[test]
    fn nothing_overtakes_an_acquire_of_its_own_token() {
        let (mut asking, [one, other]) = (Asking::default(), ["k"; 2].map(bearer));
        for bearer in [&bearer("k"), &bearer("k"), &one] {
            drop(asking.batches(vec![acquire(bearer)], false));
        }
        let renewal = Call::Renew {
            bearer: bearer("k"),
            note: None,
        };
        let calls = [Call::Leave(other.clone()), renewal, Call::Leave(one)].map(sent);
        let calls = std::iter::once(acquire(&other)).chain(calls).collect();
        let (go, later) = split(&mut asking, calls, false);
        assert_eq!(go.len(), 2);
        assert!(matches!(go[0].calls()[0].call, Call::Renew { .. }));
        assert!(matches!(later[0].call, Call::Acquire { .. }));
        assert!(matches!(&later[1].call, Call::Leave(it) if it.token == other.token));
    }
}

//! Answers on their way to callers. The answers of a turn lie on a pile. The thread that takes
//! the turn delivers them one after the other, and each caller that is polled with its own
//! answer delivers some of the others.
//!
//! The reason: a caller that is woken may take over the processor of the thread that woke it.
//! All other answers would wait until that thread runs again, while the caller finds no more
//! work, falls asleep, and is woken again for the next answer.
//!
//! If each caller woke only the next one, a blocked caller would hold up the grants of others.
//!
//! - Nothing stays on the pile: the thread of the turn takes from it until it is empty,
//!   whether callers help or not.
//! - Nobody takes an answer before the last one is sent. So a waker that blocks holds up one
//!   delivery alone.
//! - The next holder of a lock is woken before the one that released it in the same turn: both
//!   answers are one delivery.
//! - A caller delivers a few answers in a poll: it calls wakers of strangers.
//! - A waker that panics does not end the poll of a stranger, and the rest is delivered.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::at_work::{AtWork, is_at_work};
use crate::held::guard::LockGuard;
use crate::types::answer::Answer;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::terms::Terms;

/// How many deliveries a caller makes in one poll.
const MOST: usize = 16;

/// The answers of one turn.
#[derive(Default)]
pub(crate) struct Answers(Vec<Delivery>);

/// An answer, or two about one lock.
#[derive(Default)]
struct Delivery {
    grant: Option<Grant>,
    release: Option<Release>,
}

struct Grant {
    to: Answer<LockGuard>,
    guard: LockGuard,
}

struct Release {
    to: Answer<bool>,
    terms: Arc<Terms>,
    result: Result<bool, LockError>,
}

impl Answers {
    pub(super) fn grant(&mut self, to: Answer<LockGuard>, guard: LockGuard) {
        let delivery = self.about(&guard.lease().terms.key, |it| it.grant.is_some());
        delivery.grant = Some(Grant { to, guard });
    }

    pub(super) fn release(
        &mut self,
        to: Answer<bool>,
        terms: Arc<Terms>,
        result: Result<bool, LockError>,
    ) {
        let delivery = self.about(&terms.key, |it| it.release.is_some());
        delivery.release = Some(Release { to, terms, result });
    }

    /// The last delivery if it is about the same lock and not full, else a new one.
    fn about(&mut self, key: &LockKey, is_full: fn(&Delivery) -> bool) -> &mut Delivery {
        let has_room = |it: &Delivery| !is_full(it) && it.key() == Some(key);
        if !self.0.last().is_some_and(has_room) {
            self.0.push(Delivery::default());
        }
        let last = self.0.len() - 1;
        &mut self.0[last]
    }
}

impl Delivery {
    fn key(&self) -> Option<&LockKey> {
        let granted = self.grant.as_ref().map(|it| &it.guard.lease().terms.key);
        granted.or_else(|| self.release.as_ref().map(|it| &it.terms.key))
    }

    fn deliver(self) {
        if let Some(Grant { to, guard }) = self.grant {
            send(to, Ok(guard));
        }
        if let Some(Release { to, result, .. }) = self.release {
            send(to, result);
        }
    }
}

/// If nobody takes a guard, its drop releases the lock. The panic of a waker is reported by the
/// panic hook.
pub(super) fn send<T>(to: Answer<T>, result: Result<T, LockError>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(to.send(result))));
}

/// The deliveries of the last turn that nobody has taken yet.
#[derive(Default)]
pub(crate) struct Pile {
    /// How many there are, for a look without the mutex. The thread of the turn sees what it
    /// put there; for a caller, an outdated number does no harm.
    left: AtomicUsize,
    deliveries: Mutex<VecDeque<Delivery>>,
}

impl Pile {
    /// Delivers the answers of a turn, together with callers that help.
    pub(super) fn deliver(&self, answers: &mut Answers) {
        if answers.0.len() > 1 {
            self.put(answers);
            let _at_work = AtWork::begin();
            while self.deliver_next() {}
        } else if let Some(only) = answers.0.pop() {
            let _at_work = AtWork::begin();
            only.deliver();
        }
    }

    /// Delivers some of the answers on it, if this thread does not do so already: a waker may
    /// poll a caller at once.
    pub(super) fn help(&self) {
        if self.left.load(Ordering::Relaxed) == 0 || is_at_work() {
            return;
        }
        let _at_work = AtWork::begin();
        for _ in 0..MOST {
            if !self.deliver_next() {
                return;
            }
        }
    }

    fn put(&self, answers: &mut Answers) {
        let mut deliveries = self.lock();
        deliveries.extend(answers.0.drain(..));
        self.left.store(deliveries.len(), Ordering::Relaxed);
    }

    /// `false` if nothing is left.
    fn deliver_next(&self) -> bool {
        // The mutex is free again before a waker is called.
        let next = self.take();
        next.map(Delivery::deliver).is_some()
    }

    fn take(&self) -> Option<Delivery> {
        let mut deliveries = self.lock();
        let next = deliveries.pop_front();
        self.left.store(deliveries.len(), Ordering::Relaxed);
        next
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Delivery>> {
        // Nothing panics while it is locked.
        let deliveries = self.deliveries.lock();
        deliveries.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::{Context, Wake, Waker};
    use std::thread;
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;
    use crate::base::clock::Clock;
    use crate::held::home::Nowhere;
    use crate::held::lease::Lease;
    use crate::types::deadline::deadline;
    use crate::types::terms::LeaseId;

    const TTL: Duration = Duration::from_secs(10);

    /// The call that wakes a caller.
    struct Call<F>(F);

    impl<F: Fn() + Send + Sync + 'static> Wake for Call<F> {
        fn wake(self: Arc<Self>) {
            (self.0)();
        }
    }

    /// The woken callers, in this order.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<&'static str>>>);

    impl Log {
        fn add(&self, name: &'static str) {
            self.0.lock().expect("no panic").push(name);
        }

        fn names(&self) -> Vec<&'static str> {
            self.0.lock().expect("no panic").clone()
        }

        /// A caller that is noted when it is woken.
        fn caller<T>(&self, name: &'static str) -> Caller<T> {
            let log = self.clone();
            Caller::new(move || log.add(name))
        }
    }

    /// The two ends of an answer.
    struct Caller<T> {
        to: Answer<T>,
        answer: oneshot::Receiver<Result<T, LockError>>,
    }

    impl<T> Caller<T> {
        fn new(action: impl Fn() + Send + Sync + 'static) -> Self {
            let (to, mut answer) = oneshot::channel();
            let waker = Waker::from(Arc::new(Call(action)));
            let polled = pin!(&mut answer).poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            Self { to, answer }
        }
    }

    fn terms(key: &str) -> Arc<Terms> {
        Terms::of(LeaseId(1), key, TTL).into()
    }

    fn guard(key: &str) -> LockGuard {
        let clock = Clock::manual();
        let (now, home) = (clock.now(), Arc::new(Nowhere));
        let lease = Lease::new(terms(key), 1, now, deadline(now, TTL), clock, home);
        LockGuard::new(Arc::new(lease))
    }

    /// Answers that are kept where they arrive.
    #[derive(Default)]
    struct Turn {
        answers: Answers,
        released: Vec<oneshot::Receiver<Result<bool, LockError>>>,
        granted: Vec<oneshot::Receiver<Result<LockGuard, LockError>>>,
    }

    impl Turn {
        fn release(&mut self, key: &str, caller: Caller<bool>) {
            self.answers.release(caller.to, terms(key), Ok(true));
            self.released.push(caller.answer);
        }

        fn grant(&mut self, key: &str, caller: Caller<LockGuard>) {
            self.answers.grant(caller.to, guard(key));
            self.granted.push(caller.answer);
        }
    }

    /// A turn in which `next` gets the lock that `last` has released, between other callers.
    fn hand_over(log: &Log) -> Turn {
        let mut turn = Turn::default();
        turn.release("a", log.caller("a"));
        turn.release("b", log.caller("last"));
        turn.grant("b", log.caller("next"));
        turn.release("c", log.caller("c"));
        turn.grant("d", log.caller("d"));
        turn
    }

    // Section: guarantees.md#nothing-is-left-behind
    /// Every order in which three threads take deliveries and make them, the first of which
    /// is the one of the turn; the others stop for ever where the order ends.
    #[test]
    fn in_every_order_each_answer_that_nobody_has_in_hand_arrives_once() {
        const STEPS: u32 = 9;
        for order in 0..3_usize.pow(STEPS) {
            let (log, pile) = (Log::default(), Pile::default());
            let mut turn = hand_over(&log);
            pile.put(&mut turn.answers);
            let mut hands = [None, None, None];
            let mut rest = order;
            for _ in 0..STEPS {
                let hand: &mut Option<Delivery> = &mut hands[rest % 3];
                rest /= 3;
                match hand.take() {
                    Some(delivery) => delivery.deliver(),
                    None => *hand = pile.take(),
                }
            }
            let [first, others @ ..] = hands;
            first.into_iter().for_each(Delivery::deliver);
            while pile.deliver_next() {}
            assert_eq!(pile.left.load(Ordering::Relaxed), 0);

            let mut names = log.names();
            let place = |name| names.iter().position(|it| *it == name);
            assert!(place("next") <= place("last"), "{names:?} in order {order}");
            others.into_iter().flatten().for_each(Delivery::deliver);
            names = log.names();
            names.sort_unstable();
            assert_eq!(names, ["a", "c", "d", "last", "next"], "in order {order}");
        }
    }

    #[test]
    fn the_next_holder_is_woken_before_the_last_one() {
        for last_comes_first in [true, false] {
            let (log, pile, mut turn) = (Log::default(), Pile::default(), Turn::default());
            if last_comes_first {
                turn.release("k", log.caller("last"));
                turn.grant("k", log.caller("next"));
            } else {
                turn.grant("k", log.caller("next"));
                turn.release("k", log.caller("last"));
            }
            assert_eq!(turn.answers.0.len(), 1, "both go together");
            pile.deliver(&mut turn.answers);
            assert_eq!(log.names(), ["next", "last"]);
        }
    }

    // Section: guarantees.md#nothing-is-left-behind
    #[test]
    fn what_blocks_a_caller_that_helps_holds_up_its_own_delivery_alone() {
        let (log, pile) = (Log::default(), Arc::new(Pile::default()));
        let (blocks, blocked) = mpsc::channel();
        let (goes_on, waits) = mpsc::channel::<()>();
        let waits = Mutex::new(waits);
        let (blocked, helper) = (Mutex::new(blocked), Arc::clone(&pile));
        let helpers = Arc::new(Mutex::new(Vec::new()));
        let joined = Arc::clone(&helpers);

        let mut turn = Turn::default();
        // The thread of the turn wakes it, and finds the next one in the hand of a helper.
        let first = Caller::new(move || {
            let pile = Arc::clone(&helper);
            let helper = thread::spawn(move || pile.help());
            joined.lock().expect("no panic").push(helper);
            blocked.lock().expect("no panic").recv().expect("it helps");
        });
        turn.release("a", first);
        let second = Caller::new(move || {
            blocks.send(()).expect("somebody waits");
            let _ = waits.lock().expect("no panic").recv();
        });
        turn.release("b", second);
        turn.release("c", log.caller("c"));
        turn.release("d", log.caller("d"));

        pile.deliver(&mut turn.answers);
        assert_eq!(log.names(), ["c", "d"]);
        drop(goes_on);
        for helper in helpers.lock().expect("no panic").drain(..) {
            helper.join().expect("no panic");
        }
        for mut answer in turn.released {
            assert!(answer.try_recv().is_ok(), "it has arrived");
        }
    }

    #[test]
    fn a_caller_delivers_a_few() {
        let (log, pile, mut turn) = (Log::default(), Pile::default(), Turn::default());
        pile.help();
        for number in 0..2 * MOST {
            turn.release(&number.to_string(), log.caller("woken"));
        }
        pile.put(&mut turn.answers);
        pile.help();
        assert_eq!(log.names().len(), MOST);
        pile.deliver(&mut turn.answers);
        assert_eq!(
            log.names().len(),
            MOST,
            "the turn has no answers of its own"
        );
        pile.help();
        assert_eq!(log.names().len(), 2 * MOST);
    }

    #[test]
    fn a_caller_that_is_polled_by_its_waker_does_not_help() {
        let (log, pile, mut turn) = (Log::default(), Arc::new(Pile::default()), Turn::default());
        let (inner, polled) = (Arc::clone(&pile), log.clone());
        let first = Caller::new(move || {
            inner.help();
            polled.add("first");
        });
        turn.release("a", first);
        turn.release("b", log.caller("second"));
        pile.deliver(&mut turn.answers);
        assert_eq!(log.names(), ["first", "second"]);
        assert!(!is_at_work());
    }

    // Section: guarantees.md#nothing-is-left-behind
    #[test]
    fn a_waker_that_panics_harms_nobody_else() {
        let (log, pile, mut turn) = (Log::default(), Pile::default(), Turn::default());
        for number in 0..2 {
            turn.release(&number.to_string(), Caller::new(|| panic!("a waker fails")));
            turn.release("k", log.caller("woken"));
        }
        pile.put(&mut turn.answers);
        pile.help();
        assert_eq!(log.names(), ["woken"; 2]);
        assert!(!is_at_work());
        for mut answer in turn.released {
            assert!(answer.try_recv().is_ok(), "it has arrived");
        }
    }
}

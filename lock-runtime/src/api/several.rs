//! An acquisition of several keys: chooses the next key, or starts again from the first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

use crate::api::shared::Shared;
use crate::base::clock::Moment;
use crate::driver::Op;
use crate::held::guard::LockGuard;
use crate::types::enclosing::{Enclosing, MOST_ENCLOSING};
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::terms::{LeaseId, Terms, Wait};

/// The next key to ask for, or the result.
type Step = Result<Arc<Terms>, Result<LockGuard, LockError>>;

/// The progress of an acquisition of several keys. The keys taken so far are renewed like every
/// lock, and released when this is dropped.
pub(crate) struct Several {
    /// The terms of the first key.
    terms: Arc<Terms>,
    /// The other keys, the next one last.
    rest: Vec<LockKey>,
    /// How many of them have not been requested.
    left: usize,
    taken: Option<LockGuard>,
    /// Rings when one of their leases ends, so that adding a key need not check all of them.
    alarm: Arc<Alarm>,
    /// Its slot among the watchers of the taken keys.
    slot: Option<u64>,
    /// When the first key was requested.
    started: Moment,
}

impl Several {
    pub(crate) fn new(terms: &Arc<Terms>, rest: Vec<LockKey>) -> Self {
        Self {
            terms: Arc::clone(terms),
            left: rest.len(),
            rest,
            taken: None,
            alarm: Arc::default(),
            slot: None,
            started: Moment::from_nanos(0),
        }
    }

    /// All keys but the first.
    pub(crate) fn rest(&self) -> &[LockKey] {
        &self.rest
    }

    /// The wait for all of them begins.
    pub(crate) fn begin(&mut self, terms: &Arc<Terms>, now: Moment) {
        self.terms = Arc::clone(terms);
        self.started = now;
    }

    /// Whether a taken key has been lost during the wait for the next; wakes `cx` when that
    /// happens.
    pub(crate) fn poll_lost(&self, cx: &Context<'_>) -> bool {
        self.alarm.wakes(cx.waker());
        self.alarm.has_rung()
    }

    /// The step after `answer`; without one, the acquisition `id` is cancelled.
    pub(crate) fn step(
        &mut self,
        shared: &Shared,
        id: LeaseId,
        answer: Option<Result<LockGuard, LockError>>,
    ) -> Step {
        let now = shared.config.clock.now();
        match answer {
            Some(Ok(guard)) => self.go_on(shared, now, guard),
            Some(Err(mut error)) => {
                if let LockError::Contended { waited, .. } = &mut error {
                    *waited = now.since(self.started);
                }
                Err(Err(error))
            }
            None => {
                shared.mailbox.post(Op::Cancel(id));
                self.start_over(shared, now)
            }
        }
    }

    /// Adds the last taken key to the others; requests the next one, or returns the guard of all
    /// of them.
    fn go_on(&mut self, shared: &Shared, now: Moment, guard: LockGuard) -> Step {
        let waker = Waker::from(Arc::clone(&self.alarm));
        guard.lease().receive();
        guard.lease().watch(&mut self.slot, &waker);
        let is_held = guard.lease().is_held() && !self.alarm.has_rung();
        let guard = guard.on_top_of(self.taken.take());
        match self.left.checked_sub(1) {
            None if is_held => match guard.deliver() {
                Ok(guard) => {
                    guard.lease().unwatch(self.slot);
                    return Err(Ok(guard));
                }
                Err(guard) => self.taken = Some(guard),
            },
            Some(left) if is_held => {
                self.taken = Some(guard);
                self.left = left;
                return Ok(self.ask(shared, now, self.rest[left].clone()));
            }
            _ => self.taken = Some(guard),
        }
        self.start_over(shared, now)
    }

    /// A taken key has been lost: releases the others, and starts with the first key again if
    /// there is time.
    fn start_over(&mut self, shared: &Shared, now: Moment) -> Step {
        let taken = self.take();
        if self.wait(now).is_try() {
            let lost = taken.as_ref().and_then(|it| it.lease().first_lost());
            return Err(Err(LockError::Contended {
                key: lost.map_or(&self.terms.key, |it| &it.terms.key).clone(),
                waited: now.since(self.started),
                holder: None,
            }));
        }
        self.left = self.rest.len();
        Ok(self.ask(shared, now, self.terms.key.clone()))
    }

    fn ask(&self, shared: &Shared, now: Moment, key: LockKey) -> Arc<Terms> {
        Arc::new(Terms {
            id: shared.next_id(),
            key,
            wait: self.wait(now),
            more_keys: self.left > 0,
            holds: self.holds(),
            ..Terms::clone(&self.terms)
        })
    }

    /// The locks that the caller holds while it asks for the next key.
    fn holds(&self) -> Box<[Enclosing]> {
        let taken = self.taken.iter().flat_map(|it| it.lease().enclosing());
        let all = taken.chain(self.terms.holds.iter().copied());
        all.take(MOST_ENCLOSING).collect()
    }

    /// The rest of the wait for all of them.
    fn wait(&self, now: Moment) -> Wait {
        self.terms.wait.rest(self.started, now)
    }

    /// Returns the taken keys, and stops watching them.
    fn take(&mut self) -> Option<LockGuard> {
        let taken = self.taken.take()?;
        taken.lease().unwatch(self.slot);
        // The old one may still ring.
        self.alarm = Arc::default();
        Some(taken)
    }
}

/// Wakes the caller when a lease ends, and remembers that.
#[derive(Default)]
struct Alarm {
    rung: AtomicBool,
    caller: Mutex<Option<Waker>>,
}

impl Alarm {
    fn has_rung(&self) -> bool {
        self.rung.load(Ordering::SeqCst)
    }

    fn wakes(&self, waker: &Waker) {
        let mut caller = self.caller.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *caller {
            Some(known) => known.clone_from(waker),
            None => *caller = Some(waker.clone()),
        }
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::SeqCst);
        let mut caller = self.caller.lock().unwrap_or_else(PoisonError::into_inner);
        let waker = caller.take();
        // The woken task may poll at once.
        drop(caller);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Several {
    fn drop(&mut self) {
        drop(self.take());
    }
}

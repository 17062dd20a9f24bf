//! Decides which thread polls the engine: the driver's own, or a caller for one turn when nothing is
//! in flight, or when its lock is handed over in a chain, since waking a thread takes longer
//! than sending a request. If the answer is likely to come before the caller would be asleep,
//! its turn lasts until the answer comes ([`AdaptiveSpin`]). An unawaited release does not
//! count as in flight. Callers that also sent while answers are due were no faster.
//!
//! Sockets stay with the runtime of the driver's thread: tokio panics if a caller's runtime
//! cannot poll them, and nobody can ask it.
//!
//! All polls use one waker, that of [`WakeFlag`], which says why no wake-up is lost.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;
use tokio::task::unconstrained;

use super::adaptive_spin::AdaptiveSpin;
use super::at_work::AtWork;
use super::delivery::Pile;
use super::engine::Engine;
use super::wake_flag::WakeFlag;
use crate::types::key::LockKey;

/// The engine, polled by one thread at a time.
pub(super) struct SharedEngine {
    /// `None` before it has connected and after it has ended.
    engine: Mutex<Option<Engine>>,
    /// Whether a caller may poll: as of the last turn.
    quiet: AtomicBool,
    /// Marks of the keys about which a caller may poll all the same: as of the last turn.
    chained_keys: AtomicU64,
    flag: Arc<WakeFlag>,
    waker: Waker,
    spin: AdaptiveSpin,
    pile: Pile,
    /// The runtime that timers and sockets belong to, whichever thread polls them.
    runtime: Option<Handle>,
}

/// Removes the engine when its thread ends, in whichever way, which notifies callers that
/// wait for an answer.
pub(super) struct InstalledEngine(pub(super) Arc<SharedEngine>);

impl Drop for InstalledEngine {
    fn drop(&mut self) {
        let engine = self.0.lock().take();
        // Outside of the lock.
        drop(engine);
    }
}

/// The right of a caller to poll the engine once.
pub(super) struct CallerTurn<'a> {
    shared: &'a SharedEngine,
    engine: MutexGuard<'a, Option<Engine>>,
    runtime: &'a Handle,
    /// Whether the answer to its request will be the only one.
    is_quiet: bool,
    /// Whether the lock that it is about is handed over in a chain.
    hands_over: bool,
}

impl SharedEngine {
    pub(super) fn new(runtime: Option<Handle>) -> Self {
        let flag = Arc::new(WakeFlag::default());
        Self {
            engine: Mutex::new(None),
            quiet: AtomicBool::new(false),
            chained_keys: AtomicU64::new(0),
            waker: Waker::from(Arc::clone(&flag)),
            flag,
            spin: AdaptiveSpin::new(),
            pile: Pile::default(),
            runtime,
        }
    }

    pub(super) fn install(self: &Arc<Self>, engine: Engine) -> InstalledEngine {
        *self.lock() = Some(engine);
        InstalledEngine(Arc::clone(self))
    }

    /// Delivers some of the answers of a turn that goes on elsewhere.
    pub(super) fn help_to_deliver(&self) {
        self.pile.help();
    }

    /// The work of the driver's thread: polls the engine whenever there is something to
    /// do, until `over`, or until the engine is gone.
    pub(super) fn poll_on_thread(
        &self,
        cx: &mut Context<'_>,
        over: impl Fn(&Engine) -> bool,
    ) -> Poll<()> {
        self.flag.runs_on(cx.waker());
        let mut engine = self.lock();
        let Some(engine) = engine.as_mut() else {
            return Poll::Ready(());
        };
        self.poll(engine, false);
        if over(engine) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// A turn for a caller. None while a thread polls. None while an operation in flight is
    /// awaited, since it is better to send more requests together then, unless the lock that the
    /// turn is `about` is handed over in a chain. A turn sees all wake-ups from its begin on.
    pub(super) fn caller_turn(&self, about: Option<&LockKey>) -> Option<CallerTurn<'_>> {
        let is_quiet = self.quiet.load(Ordering::Acquire);
        let marks = self.chained_keys.load(Ordering::Relaxed);
        let hands_over = marks != 0 && about.is_some_and(|key| key.mark() & marks != 0);
        if !is_quiet && !hands_over {
            return None;
        }
        let runtime = self.runtime()?;
        let engine = self.engine.try_lock().ok()?;
        engine.as_ref()?;
        self.flag.begin();
        Some(CallerTurn {
            shared: self,
            engine,
            runtime,
            is_quiet,
            hands_over,
        })
    }

    /// Polls the engine on this thread, after the poll of another thread; not for a thread that
    /// polls already. `false` if operations are left: one that another thread is about to send
    /// holds up those behind it.
    #[cfg(feature = "testing")]
    pub(super) fn poll_here(&self) -> bool {
        let Some(runtime) = self.runtime() else {
            return true;
        };
        let mut engine = self.lock();
        let Some(engine) = engine.as_mut() else {
            return true;
        };
        self.poll_for_caller(engine, runtime, false);
        engine.has_taken_all()
    }

    /// `None` on a thread that ends, which cannot enter a runtime any more.
    fn runtime(&self) -> Option<&Handle> {
        let ends = Handle::try_current().is_err_and(|error| error.is_thread_local_destroyed());
        self.runtime.as_ref().filter(|_| !ends)
    }

    fn poll_for_caller(&self, engine: &mut Engine, runtime: &Handle, spin: bool) {
        let _runtime = runtime.enter();
        self.poll(engine, spin);
        if engine.is_over() {
            self.flag.wake_thread();
        }
    }

    /// Takes turns as long as there is work. With `spin`, also until the due answer comes, if
    /// it is likely to come soon and no other caller here waits.
    fn poll(&self, engine: &mut Engine, spin: bool) {
        let _at_work = AtWork::begin();
        let mut cx = Context::from_waker(&self.waker);
        self.flag.turns(|| {
            // The caller's tokio budget is for its own work.
            let turn = unconstrained(poll_fn(|cx| {
                engine.turn(cx, &self.pile);
                Poll::Ready(())
            }));
            let _ = pin!(turn).poll(&mut cx);
            self.chained_keys
                .store(engine.chained_keys(), Ordering::Relaxed);
            let is_quiet = engine.is_quiet();
            // If its answer takes long, the release is better sent together with what follows.
            let is_free = is_quiet || engine.is_unawaited() && self.spin.is_promising();
            self.quiet.store(is_free, Ordering::Release);
            if spin && !is_quiet && engine.is_about_one() {
                self.spin.wait(|| self.flag.is_woken());
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, Option<Engine>> {
        self.engine.lock().unwrap_or_else(|poisoned| {
            // Somebody's waker has panicked in the middle of a turn.
            let mut engine = PoisonError::into_inner(poisoned);
            *engine = None;
            engine
        })
    }
}

impl CallerTurn<'_> {
    pub(super) fn hands_over(&self) -> bool {
        self.hands_over
    }

    /// Polls it; `is_awaited` if the caller waits for an answer.
    pub(super) fn poll(mut self, is_awaited: bool) {
        if let Some(engine) = self.engine.as_mut() {
            let spin = is_awaited && self.is_quiet;
            self.shared.poll_for_caller(engine, self.runtime, spin);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::task::Wake as _;

    use super::*;
    use crate::base::wakes::Wakes;

    fn flag() -> (Arc<WakeFlag>, Arc<Wakes>) {
        let (flag, thread) = (Arc::new(WakeFlag::default()), Arc::new(Wakes::default()));
        flag.runs_on(&Waker::from(Arc::clone(&thread)));
        (flag, thread)
    }

    #[test]
    fn the_thread_is_woken_once_and_only_where_nobody_polls() {
        let (flag, thread) = flag();
        flag.wake_by_ref();
        flag.wake_by_ref();
        assert_eq!(thread.count(), 1);
        let mut turns = 0;
        flag.turns(|| turns += 1);
        assert_eq!(turns, 1, "nothing has happened meanwhile");
        flag.wake_by_ref();
        assert_eq!(thread.count(), 2);

        turns = 0;
        flag.turns(|| {
            turns += 1;
            if turns == 1 {
                flag.wake_by_ref();
            }
        });
        assert_eq!((turns, thread.count()), (2, 2), "whoever polls sees it");
        flag.turns(|| flag.wake_by_ref());
        assert_eq!(thread.count(), 3, "the rest is left to the thread");
    }

    #[test]
    fn a_turn_that_panics_wakes_the_thread() {
        let (flag, thread) = flag();
        let turn = catch_unwind(AssertUnwindSafe(|| {
            flag.turns(|| panic!("a waker fails"));
        }));
        assert!(turn.is_err());
        assert_eq!(thread.count(), 1);
    }
}

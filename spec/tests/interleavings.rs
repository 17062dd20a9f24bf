//! What callers and the driver's thread share, in every interleaving that loom finds. The modules are the runtime's own, with
//! loom's primitives in place of those of the standard library; the scenes use them in the order in which the runtime does.
//!
//! A thread is interrupted in the middle of an action three times at most (`LOOM_MAX_PREEMPTIONS` changes that).

#![allow(dead_code, reason = "the runtime uses more of the modules")]

#[path = "../../lock-runtime/src/base/last_waker.rs"]
mod last_waker;
#[path = "../../lock-runtime/src/held/lease/state.rs"]
mod state;
#[path = "../../lock-runtime/src/driver/wake_flag.rs"]
mod wake_flag;

/// The names under which the modules find what they use.
mod base {
    pub(crate) use super::last_waker;

    pub(crate) mod sync {
        pub(crate) use super::super::sequential::{AtomicBool, AtomicU64, AtomicUsize};
        pub(crate) use loom::sync::atomic::{AtomicU8, Ordering};
        pub(crate) use loom::sync::{Mutex, MutexGuard};
    }
}

/// `SeqCst` as the standard library defines it: to loom it means `AcqRel`, and fences alone have one order for all threads.
mod sequential {
    use loom::sync::atomic::{Ordering, fence};

    macro_rules! atomic {
        ($name:ident, $value:ty, $($change:ident)*) => {
            #[derive(Default)]
            pub(crate) struct $name(loom::sync::atomic::$name);

            impl $name {
                pub(crate) fn new(value: $value) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }

                pub(crate) fn load(&self, order: Ordering) -> $value {
                    fenced(|| self.0.load(order))
                }

                pub(crate) fn store(&self, value: $value, order: Ordering) {
                    fenced(|| self.0.store(value, order));
                }

                $(pub(crate) fn $change(&self, value: $value, order: Ordering) -> $value {
                    fenced(|| self.0.$change(value, order))
                })*
            }
        };
    }

    atomic!(AtomicBool, bool, swap);
    atomic!(AtomicU64, u64, fetch_max);
    atomic!(AtomicUsize, usize, fetch_add fetch_sub);

    /// A fence before each access is enough.
    fn fenced<T>(access: impl FnOnce() -> T) -> T {
        fence(Ordering::SeqCst);
        access()
    }
}

use std::sync::Arc;
// Loom does not look at what only the tests note.
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use loom::model::Builder;
use loom::sync::Mutex;
use loom::sync::atomic::AtomicUsize;
use loom::thread;

use last_waker::LastWaker;
use state::{InUse, Purpose, State};
use wake_flag::WakeFlag;

/// Tries every interleaving.
fn model(scene: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(scene);
}

/// Whether a task has been woken since it was polled last.
#[derive(Default)]
struct Task(AtomicBool);

impl Task {
    fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    fn is_woken(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The engine, which its mutex keeps to one thread at a time, the requests on their way to it, and the driver's thread.
struct Driver {
    flag: Arc<WakeFlag>,
    /// How many requests were taken in.
    engine: Mutex<usize>,
    inbox: AtomicUsize,
    thread: Arc<Task>,
}

impl Driver {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            flag: Arc::default(),
            engine: Mutex::new(0),
            inbox: AtomicUsize::new(0),
            thread: Arc::default(),
        })
    }

    /// As a caller does: it polls the engine itself if no other thread does.
    fn send(&self) {
        let turn = self.engine.try_lock().ok();
        if turn.is_some() {
            self.flag.begin();
        }
        self.inbox.fetch_add(1, Ordering::SeqCst);
        self.flag.wake_by_ref();
        if let Some(mut engine) = turn {
            self.poll(&mut engine);
        }
    }

    /// As the driver's thread does.
    fn poll_on_thread(&self) {
        self.flag.runs_on(&self.thread.waker());
        let mut engine = self.engine.lock().expect("nobody has panicked");
        self.poll(&mut engine);
    }

    fn poll(&self, engine: &mut usize) {
        self.flag.turns(|| {
            *engine += self.inbox.swap(0, Ordering::SeqCst);
        });
    }
}

#[test]
fn no_request_is_left() {
    model(|| {
        let driver = Driver::new();
        let callers = [(); 2].map(|()| {
            let driver = Arc::clone(&driver);
            thread::spawn(move || driver.send())
        });
        driver.poll_on_thread();
        for caller in callers {
            caller.join().expect("it sends");
        }
        while driver.thread.is_woken() {
            driver.poll_on_thread();
        }
        assert_eq!(*driver.engine.lock().expect("nobody polls"), 2);
    });
}

#[test]
fn the_task_that_was_polled_last_is_woken() {
    model(|| {
        let (last, is_ready) = (
            Arc::new(LastWaker::default()),
            Arc::new(loom::sync::atomic::AtomicBool::new(false)),
        );
        let event = {
            let (last, is_ready) = (Arc::clone(&last), Arc::clone(&is_ready));
            thread::spawn(move || {
                is_ready.store(true, Ordering::SeqCst);
                last.wake();
            })
        };
        let tasks = [(); 2].map(|()| Arc::new(Task::default()));
        // It is polled by one task, and then by another one.
        let seen = tasks.each_ref().map(|task| {
            last.set(&task.waker());
            is_ready.load(Ordering::SeqCst)
        });
        event.join().expect("it happens");
        assert!(seen[1] || tasks[1].is_woken(), "nobody hears of it");
    });
}

/// A lease, what the driver knows of its end, and the bodies that are polled under it.
#[derive(Default)]
struct Hold {
    lease: State,
    /// What a poll does.
    work: AtomicUsize,
    /// Whether the driver has given the lock away.
    is_free: AtomicBool,
    /// Whether the driver hears that the last poll has returned.
    has_returned: AtomicBool,
}

/// What has become of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    Stopped,
    Waiting,
    Finished,
    /// It has finished in a poll during which the lease ended.
    Overran,
}

impl Hold {
    fn new() -> Arc<Self> {
        let hold = Self {
            lease: State::until(1),
            ..Self::default()
        };
        hold.lease.arrive();
        Arc::new(hold)
    }

    fn is_over(&self) -> bool {
        self.lease.deadline() == 0
    }

    fn works(&self) {
        for _ in 0..2 {
            assert!(
                !self.is_free.load(Ordering::SeqCst),
                "polled without a lock"
            );
            self.work.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// As `held::hold` polls a body.
    fn poll(&self, slot: u64, task: &Arc<Task>, finishes: bool) -> Body {
        self.lease.poll_begins();
        let body = self.poll_unless_over(slot, task, finishes);
        if self.lease.poll_returns() {
            self.has_returned.store(true, Ordering::SeqCst);
        }
        body
    }

    fn poll_unless_over(&self, slot: u64, task: &Arc<Task>, finishes: bool) -> Body {
        if !self.is_over() {
            self.works();
            if finishes {
                self.lease.unwatch(slot);
                if !self.is_over() {
                    return Body::Finished;
                }
                self.lease.unstopped();
                return Body::Overran;
            }
            self.lease.watch(slot, &task.waker(), Purpose::Body);
            if !self.is_over() {
                return Body::Waiting;
            }
        }
        self.lease.stopped();
        Body::Stopped
    }

    /// As the driver's thread ends it.
    fn end(&self) -> InUse {
        self.lease.end();
        let in_use = self.lease.in_use();
        self.is_free.store(in_use == InUse::No, Ordering::SeqCst);
        in_use
    }
}

#[test]
fn the_end_of_a_lease_stops_each_body_before_its_lock_is_free() {
    model(|| {
        let hold = Hold::new();
        let bodies = [1, 2].map(|slot| {
            let (hold, task) = (Arc::clone(&hold), Arc::<Task>::default());
            thread::spawn(move || {
                let mut body = hold.poll(slot, &task, false);
                // One of them is polled again, and finishes.
                if slot == 2 && body == Body::Waiting {
                    body = hold.poll(slot, &task, true);
                }
                (body, task)
            })
        });
        let in_use = hold.end();
        let bodies = bodies.map(|it| it.join().expect("it is polled"));
        for (body, task) in &bodies {
            assert!(
                *body != Body::Waiting || task.is_woken(),
                "a body is not stopped"
            );
        }
        let is = |which| bodies.iter().any(|(body, _)| *body == which);
        let has_run = hold.work.load(Ordering::Relaxed) > 0;
        match in_use {
            InUse::ByPoll => {
                let has_returned = hold.has_returned.load(Ordering::SeqCst);
                assert!(has_returned, "the driver waits for ever");
            }
            InUse::ByGuard => assert!(
                is(Body::Finished) || is(Body::Overran) || !has_run,
                "the lock is kept for a body that is stopped"
            ),
            InUse::No => assert!(!is(Body::Overran), "no margin is left for its caller"),
        }
    });
}

#[test]
fn who_asks_for_a_lock_is_seen_by_each_that_waits_for_that() {
    model(|| {
        let lease = Arc::new(State::until(1));
        let holders = [1, 2].map(|slot| {
            let (lease, task) = (Arc::clone(&lease), Arc::<Task>::default());
            thread::spawn(move || {
                lease.watch(slot, &task.waker(), Purpose::Asked);
                (lease.is_asked(), task)
            })
        });
        assert!(lease.ask(), "it is news");
        for holder in holders {
            let (is_asked, task) = holder.join().expect("it looks");
            assert!(is_asked || task.is_woken(), "a holder does not hear of it");
        }
    });
}

//! What callers and the driver's thread share, in every interleaving that loom finds: the code of the runtime itself, with
//! loom's primitives in place of those of the standard library.
//!
//! At most two threads are interrupted in the middle of an action (`LOOM_MAX_PREEMPTIONS` changes that).

#![allow(dead_code, reason = "the runtime uses more of the modules")]

#[path = "../../lock-runtime/src/base/last_waker.rs"]
mod last_waker;
#[path = "../../lock-runtime/src/driver/wake_flag.rs"]
mod wake_flag;

/// The names under which the modules find what they use.
mod base {
    pub(crate) use super::last_waker;

    pub(crate) mod sync {
        pub(crate) use loom::sync::atomic::{AtomicU8, Ordering};
        pub(crate) use loom::sync::{Mutex, MutexGuard};
    }
}

use std::sync::Arc;
use std::task::{Wake, Waker};

use loom::model::Builder;
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use last_waker::LastWaker;
use wake_flag::WakeFlag;

/// Tries every interleaving.
fn model(scene: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
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

/// The engine, the requests on their way to it, and the driver's thread.
struct Driver {
    flag: Arc<WakeFlag>,
    /// How many requests were taken in.
    engine: Mutex<usize>,
    inbox: AtomicUsize,
    is_polled: AtomicBool,
    thread: Arc<Task>,
}

impl Driver {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            flag: Arc::default(),
            engine: Mutex::new(0),
            inbox: AtomicUsize::new(0),
            is_polled: AtomicBool::new(false),
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
            assert!(
                !self.is_polled.swap(true, Ordering::SeqCst),
                "polled by two"
            );
            *engine += self.inbox.swap(0, Ordering::SeqCst);
            self.is_polled.store(false, Ordering::SeqCst);
        });
    }
}

#[test]
fn no_request_is_left_and_no_two_threads_poll() {
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
            Arc::new(AtomicBool::new(false)),
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

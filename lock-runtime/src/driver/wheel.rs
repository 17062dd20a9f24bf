//! Who drives: the driver's thread, or for a turn a caller who finds nothing on
//! its way, since to wake a thread takes longer than to send a request.

use std::cell::Cell;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use tokio::runtime::Handle;
use tokio::task::unconstrained;

use super::latest::Latest;
use super::turn::Driver;

/// How many turns are driven in a row, before others get to theirs.
const IN_A_ROW: usize = 4;

thread_local! {
    static IN_TURN: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in the middle of a turn, as a waker is that is called there.
pub(super) fn is_driving() -> bool {
    IN_TURN.try_with(Cell::get).unwrap_or_default()
}

/// The driver, for one thread at a time.
pub(super) struct Wheel {
    /// `None` before it has connected and after it has ended.
    driver: Mutex<Option<Driver>>,
    /// Whether a caller may drive: as of the last turn.
    quiet: AtomicBool,
    bell: Arc<Bell>,
    waker: Waker,
    /// Where timers and sockets belong, whoever polls them.
    runtime: Option<Handle>,
}

/// A driver that is there, until its thread ends, in whichever way: who waits
/// for an answer is told then.
pub(super) struct Installed<'a>(&'a Wheel);

impl Drop for Installed<'_> {
    fn drop(&mut self) {
        let driver = self.0.lock().take();
        // Outside of the lock.
        drop(driver);
    }
}

/// A turn of a caller.
pub(super) struct Turn<'a> {
    wheel: &'a Wheel,
    driver: MutexGuard<'a, Option<Driver>>,
    runtime: &'a Handle,
}

impl Wheel {
    pub(super) fn new(runtime: Option<Handle>) -> Self {
        let bell = Arc::new(Bell::default());
        Self {
            driver: Mutex::new(None),
            quiet: AtomicBool::new(false),
            waker: Waker::from(Arc::clone(&bell)),
            bell,
            runtime,
        }
    }

    pub(super) fn install(&self, driver: Driver) -> Installed<'_> {
        *self.lock() = Some(driver);
        Installed(self)
    }

    /// What the driver's thread does: drives whenever there is something to do,
    /// until `over`, or until the driver is gone.
    pub(super) fn poll_drive(
        &self,
        cx: &mut Context<'_>,
        over: impl Fn(&Driver) -> bool,
    ) -> Poll<()> {
        self.bell.calls(cx.waker());
        let mut driver = self.lock();
        let Some(driver) = driver.as_mut() else {
            return Poll::Ready(());
        };
        self.drive(driver);
        if over(driver) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// A turn for a caller, unless somebody drives or a request is on its way:
    /// then more of them go together.
    pub(super) fn take_over(&self) -> Option<Turn<'_>> {
        if !self.quiet.load(Ordering::Acquire) {
            return None;
        }
        let runtime = self.runtime.as_ref()?;
        // A thread that ends has no room for a runtime any more.
        if Handle::try_current().is_err_and(|error| error.is_thread_local_destroyed()) {
            return None;
        }
        let driver = self.driver.try_lock().ok()?;
        driver.as_ref()?;
        self.bell.begin();
        Some(Turn {
            wheel: self,
            driver,
            runtime,
        })
    }

    fn drive(&self, driver: &mut Driver) {
        let _alarm = Alarm(&self.bell);
        let _ = IN_TURN.try_with(|driving| driving.set(true));
        let mut cx = Context::from_waker(&self.waker);
        for _ in 0..IN_A_ROW {
            self.bell.begin();
            // A caller's budget is for its own work.
            let turn = unconstrained(poll_fn(|cx| {
                driver.turn(cx);
                Poll::Ready(())
            }));
            let _ = pin!(turn).poll(&mut cx);
            self.quiet.store(driver.is_quiet(), Ordering::Release);
            if self.bell.end() {
                return;
            }
        }
        self.bell.call();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Driver>> {
        self.driver.lock().unwrap_or_else(|poisoned| {
            // Somebody's waker has panicked in the middle of a turn.
            let mut driver = PoisonError::into_inner(poisoned);
            *driver = None;
            driver
        })
    }
}

impl Turn<'_> {
    pub(super) fn drive(mut self) {
        let _runtime = self.runtime.enter();
        if let Some(driver) = self.driver.as_mut() {
            self.wheel.drive(driver);
            if driver.is_over() {
                self.wheel.bell.call();
            }
        }
    }
}

/// Notes that there is something to do, and wakes the driver's thread for it
/// unless somebody drives, who sees the note.
#[derive(Default)]
struct Bell {
    state: AtomicU8,
    thread: Latest,
}

const STILL: u8 = 0;
const DRIVING: u8 = 1;
const RUNG: u8 = 2;

impl Bell {
    /// Who rings from here on is heard by whoever drives.
    fn begin(&self) {
        self.state.store(DRIVING, Ordering::SeqCst);
    }

    /// Whether nobody has rung since [`begin`](Self::begin).
    fn end(&self) -> bool {
        let still = self
            .state
            .compare_exchange(DRIVING, STILL, Ordering::SeqCst, Ordering::SeqCst);
        still.is_ok()
    }

    fn calls(&self, waker: &Waker) {
        self.thread.set(waker);
    }

    fn call(&self) {
        self.thread.wake();
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(RUNG, Ordering::SeqCst) == STILL {
            self.call();
        }
    }
}

/// Goes off when a turn has ended, and makes the driver's thread see one that has
/// panicked.
struct Alarm<'a>(&'a Bell);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        let _ = IN_TURN.try_with(|driving| driving.set(false));
        if thread::panicking() {
            self.0.state.store(RUNG, Ordering::SeqCst);
            self.0.call();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Calls(AtomicUsize);

    impl Wake for Calls {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn the_thread_is_woken_once_and_only_where_nobody_drives() {
        let (bell, thread) = (Arc::new(Bell::default()), Arc::new(Calls::default()));
        bell.calls(&Waker::from(Arc::clone(&thread)));
        let calls = || thread.0.load(Ordering::SeqCst);

        bell.wake_by_ref();
        bell.wake_by_ref();
        assert_eq!(calls(), 1);
        bell.begin();
        assert!(bell.end(), "all was heard");
        bell.wake_by_ref();
        assert_eq!(calls(), 2);

        bell.begin();
        bell.wake_by_ref();
        assert_eq!(calls(), 2, "whoever drives hears it");
        assert!(!bell.end());
        bell.wake_by_ref();
        assert_eq!(calls(), 2);
        bell.begin();
        assert!(bell.end());
    }

    #[test]
    fn a_turn_that_panics_wakes_the_thread() {
        let (bell, thread) = (Bell::default(), Arc::new(Calls::default()));
        bell.calls(&Waker::from(Arc::clone(&thread)));
        bell.begin();
        let turn = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _alarm = Alarm(&bell);
            panic!("a waker fails");
        }));
        assert!(turn.is_err());
        assert_eq!(thread.0.load(Ordering::SeqCst), 1);
    }
}

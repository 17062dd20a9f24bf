//! A waker that stops the thread which calls it.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, mpsc},
    task::{Context, Wake, Waker},
};

use lock_runtime::{Acquire, LockManager};

use crate::fixtures::{TIME_LIMIT, unique};

/// Stops whoever wakes it.
#[derive(Debug)]
pub struct Stop(Mutex<mpsc::Sender<()>>, Mutex<mpsc::Receiver<()>>);

impl Stop {
    /// The waker, what says that it was woken, and what lets go of its thread when it is dropped.
    pub fn waker() -> (Waker, mpsc::Receiver<()>, mpsc::Sender<()>) {
        let (here, stopped) = mpsc::channel();
        let (hold, on) = mpsc::channel();
        let stop = Arc::new(Self(Mutex::new(here), Mutex::new(on)));
        (Waker::from(stop), stopped, hold)
    }
}

/// A manager whose thread stands still, until this is dropped: what is asked meanwhile goes together.
#[derive(Debug)]
pub struct StoppedManager {
    _hold: mpsc::Sender<()>,
    _acquire: Pin<Box<Acquire>>,
}

impl StoppedManager {
    /// Stops the thread while it grants a lock.
    pub fn new(locks: &LockManager) -> Self {
        // Now and then the answer is there before the first poll returns.
        loop {
            let mut acquire = Box::pin(locks.lock(unique("stopped")).acquire());
            let (waker, stopped, hold) = Stop::waker();
            let polled = acquire.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_pending() {
                stopped.recv_timeout(TIME_LIMIT).expect("it is answered");
                return Self {
                    _hold: hold,
                    _acquire: acquire,
                };
            }
        }
    }
}

impl Wake for Stop {
    fn wake(self: Arc<Self>) {
        let Self(here, on) = &*self;
        // Once the test has gone on, there is nothing to say and to wait for.
        let _ = here.lock().expect("no panic").send(());
        let _ = on.lock().expect("no panic").recv();
    }
}

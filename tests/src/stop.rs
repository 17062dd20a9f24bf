//! A waker that stops the thread which calls it.

use std::{
    sync::{Arc, Mutex, mpsc},
    task::{Wake, Waker},
};

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

impl Wake for Stop {
    fn wake(self: Arc<Self>) {
        let Self(here, on) = &*self;
        // Once the test has gone on, there is nothing to say and to wait for.
        let _ = here.lock().expect("no panic").send(());
        let _ = on.lock().expect("no panic").recv();
    }
}

//! Keeps the processors from falling asleep, so that a wake-up costs what it does on a machine with other work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// One thread of the lowest priority for each processor, which do nothing; until this is dropped.
#[derive(Debug)]
pub(crate) struct Awake {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    pub(crate) fn keep() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let spin = |_| {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                // On Linux of this thread alone.
                rustix::process::nice(19).expect("lowering one's priority is allowed");
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        Self {
            threads: (0..crate::cores()).map(spin).collect(),
            over,
        }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

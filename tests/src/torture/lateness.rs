//! How late a busy machine wakes up whoever sleeps.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

const PERIOD: Duration = Duration::from_millis(10);

/// A thread that sleeps and looks at the clock until this is dropped.
#[derive(Debug)]
pub(super) struct Lateness(Arc<AtomicU64>);

impl Lateness {
    pub(super) fn watch() -> Self {
        let worst = Arc::new(AtomicU64::new(0));
        let seen = Arc::downgrade(&worst);
        thread::spawn(move || {
            loop {
                let start = Instant::now();
                thread::sleep(PERIOD);
                let late = start.elapsed().saturating_sub(PERIOD).as_micros();
                let Some(worst) = seen.upgrade() else {
                    return;
                };
                worst.fetch_max(u64::try_from(late).unwrap_or(u64::MAX), Ordering::Relaxed);
            }
        });
        Self(worst)
    }

    pub(super) fn worst(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
}

//! How long a caller that has sent a request waits for the answer in its turn, before it
//! leaves that to the driver's thread. A server nearby answers sooner than a thread falls
//! asleep and is woken again. Waiting without yielding, or while other callers wait for the
//! lock, was no faster.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{available_parallelism, yield_now};
use std::time::{Duration, Instant};

/// The other tasks of the caller's thread are held up for no longer.
const LONGEST: Duration = Duration::from_micros(50);
/// How many requests are not waited for after an answer that took longer: twice as many
/// after each, and half as many again after each that came in time.
const FEWEST: u32 = 16;
const MOST: u32 = 4096;
/// If a wait lasts for longer, another thread wants the processor, and gets it for milliseconds
/// whenever it is yielded.
const TAKEN: Duration = Duration::from_micros(500);

pub(super) struct AdaptiveSpin {
    /// How many requests are not waited for from now on.
    left_out: AtomicU32,
    next: AtomicU32,
    /// How many waits do without yielding from now on.
    unyielding: AtomicU32,
    /// On one processor the server would have to wait too.
    has_processors: bool,
}

impl AdaptiveSpin {
    pub(super) fn new() -> Self {
        Self {
            left_out: AtomicU32::new(0),
            next: AtomicU32::new(FEWEST),
            unyielding: AtomicU32::new(0),
            has_processors: available_parallelism().is_ok_and(|count| count.get() > 1),
        }
    }

    /// Whether an answer is likely to come soon.
    pub(super) fn is_promising(&self) -> bool {
        let left_out = self.left_out.load(Ordering::Relaxed);
        self.left_out
            .store(left_out.saturating_sub(1), Ordering::Relaxed);
        left_out == 0 && self.has_processors
    }

    /// Waits until something `has_come`, if that is likely to be soon.
    pub(super) fn wait(&self, has_come: impl Fn() -> bool) {
        if !self.is_promising() {
            return;
        }
        let next = self.next.load(Ordering::Relaxed);
        if self.comes_in_time(has_come) {
            self.next.store((next / 2).max(FEWEST), Ordering::Relaxed);
        } else {
            self.left_out.store(next, Ordering::Relaxed);
            self.next.store((next * 2).min(MOST), Ordering::Relaxed);
        }
    }

    fn comes_in_time(&self, has_come: impl Fn() -> bool) -> bool {
        let unyielding = self.unyielding.load(Ordering::Relaxed);
        self.unyielding
            .store(unyielding.saturating_sub(1), Ordering::Relaxed);
        let since = Instant::now();
        while since.elapsed() < LONGEST {
            if has_come() {
                return true;
            }
            if unyielding == 0 {
                // The driver's thread, which hears of the answer, may need this processor.
                yield_now();
            } else {
                spin_loop();
            }
        }
        if since.elapsed() > TAKEN {
            self.unyielding.store(MOST, Ordering::Relaxed);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::thread::sleep;

    use super::*;

    /// How many of so many requests are waited for if no answer comes in time.
    fn waits(spin: &AdaptiveSpin, requests: u32) -> u32 {
        let waits = Cell::new(0);
        for _ in 0..requests {
            let looked = Cell::new(false);
            spin.wait(|| {
                looked.set(true);
                false
            });
            waits.set(waits.get() + u32::from(looked.get()));
        }
        waits.get()
    }

    fn spin() -> AdaptiveSpin {
        AdaptiveSpin {
            has_processors: true,
            ..AdaptiveSpin::new()
        }
    }

    #[test]
    fn a_server_far_away_is_hardly_ever_waited_for() {
        let spin = spin();
        assert_eq!(waits(&spin, 1 + FEWEST), 1);
        assert_eq!(waits(&spin, 1 + 2 * FEWEST), 1);
        waits(&spin, 4 * MOST);
        assert!(waits(&spin, 2 * MOST) <= 2);
    }

    #[test]
    fn one_that_answers_in_time_is_waited_for_again() {
        let spin = spin();
        waits(&spin, 4 * MOST);
        let all_are_waited_for = || {
            for _ in 0..MOST {
                spin.wait(|| true);
            }
            let looked = Cell::new(0);
            for _ in 0..10 {
                spin.wait(|| {
                    looked.set(looked.get() + 1);
                    true
                });
            }
            looked.get() == 10
        };
        // A thread that loses its processor meanwhile looks too late.
        assert!((0..100).any(|_| all_are_waited_for()));
    }

    #[test]
    fn a_processor_that_others_take_is_not_yielded() {
        let spin = spin();
        spin.wait(|| {
            sleep(2 * TAKEN);
            false
        });
        assert_eq!(spin.unyielding.load(Ordering::Relaxed), MOST);
        for _ in 0..=FEWEST {
            spin.wait(|| true);
        }
        assert_eq!(spin.unyielding.load(Ordering::Relaxed), MOST - 1);
    }

    #[test]
    fn one_processor_is_left_to_the_server() {
        let spin = AdaptiveSpin {
            has_processors: false,
            ..AdaptiveSpin::new()
        };
        assert_eq!(waits(&spin, 100), 0);
    }
}

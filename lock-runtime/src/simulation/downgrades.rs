//! Writers that go on as readers: nobody writes beside them, whatever is lost on the way.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fastrand::Rng;

use super::Store;
use super::failover::Safeguard;
use super::seeds::{seeds, worlds};
use crate::base::clock::Moment;
use crate::held::guard::LockGuard;
use crate::types::error::LockError;

/// For how long a client goes on as a reader at most, in milliseconds.
const TIMES: [u64; 2] = [50, 3_000];

/// The writers of a client that go on as readers.
pub(super) struct Downgrading {
    rng: Rng,
    asked: Vec<Asked>,
    pub(super) done: usize,
}

/// A downgrade without an answer.
struct Asked {
    answer: Pin<Box<dyn Future<Output = Result<LockGuard, LockError>>>>,
    gives_up: Option<Moment>,
}

impl Downgrading {
    pub(super) fn new(rng: Rng) -> Self {
        Self {
            rng,
            asked: Vec::new(),
            done: 0,
        }
    }

    /// Downgrades some guards of writers that would be released.
    pub(super) fn ask(&mut self, now: Moment, guard: LockGuard) {
        if self.rng.u8(..) < 80 {
            return;
        }
        let gives_up =
            (self.rng.u8(..) < 40).then(|| now.after(Duration::from_millis(self.rng.u64(0..20))));
        let mut answer = Box::pin(guard.downgrade());
        // The first poll sends it.
        let polled = answer
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "the driver has not heard of it");
        self.asked.push(Asked { answer, gives_up });
    }

    /// Drops what the program does not wait for any more.
    pub(super) fn give_up(&mut self, now: Moment) {
        self.asked
            .retain(|it| it.gives_up.is_none_or(|at| now < at));
    }

    /// The readers, and until when they want to hold the lock.
    pub(super) fn collect(&mut self, now: Moment) -> Vec<(LockGuard, Moment)> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut readers = Vec::new();
        self.asked
            .retain_mut(|it| match it.answer.as_mut().poll(&mut cx) {
                Poll::Pending => true,
                Poll::Ready(answer) => {
                    let most = TIMES[self.rng.usize(..2)];
                    let until = now.after(Duration::from_millis(self.rng.u64(1..most)));
                    readers.extend(answer.map(|guard| (guard, until)));
                    false
                }
            });
        self.done += readers.len();
        readers
    }

    pub(super) fn next_wakeup(&self) -> Option<Moment> {
        self.asked.iter().filter_map(|it| it.gives_up).min()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.asked.is_empty()
    }
}

/// How many writers went on as readers.
fn downgrades(store: Store) -> usize {
    let seeds = seeds("0..250").step_by(49);
    let worlds = worlds(seeds, store, |world, _| {
        for client in &mut world.clients {
            client.downgrading = Some(Downgrading::new(world.rng.fork()));
        }
    });
    let clients = worlds.flat_map(|it| it.clients);
    clients.filter_map(|it| Some(it.downgrading?.done)).sum()
}

#[test]
fn nobody_writes_beside_a_reader_that_was_a_writer() {
    let failing = [Safeguard::Replicas, Safeguard::Quarantine].map(Store::Failing);
    for store in [Store::One, Store::Knowing, Store::Sharded]
        .into_iter()
        .chain(failing)
    {
        let done = downgrades(store);
        println!("{store:?}: {done} writers went on as readers");
        assert!(done > 0);
    }
}

//! How much of what is in flight somebody waits for: a caller that waits alone does by itself
//! what it waits for.

use super::{Operations, Releasing};

impl Operations {
    /// Somebody waits for one lock to be granted or released, and nobody for anything more.
    pub(in crate::driver) fn is_about_one(&self) -> bool {
        match self.acquiring.len() {
            0 => self.releasing.len() == 1 && !self.only_lets_go(),
            1 => self.releasing.is_empty() || self.only_lets_go(),
            _ => false,
        }
    }

    /// Nobody waits for a lock to be granted or released, and one is being released.
    pub(in crate::driver) fn is_unawaited(&self) -> bool {
        self.acquiring.is_empty() && self.only_lets_go()
    }

    /// One lock is being released, which nobody waits for.
    fn only_lets_go(&self) -> bool {
        let detached = |it: &Releasing| it.answer.is_none();
        self.releasing.len() == 1 && self.releasing.values().all(detached)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Weak};
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;
    use crate::backend::Outcome;
    use crate::base::clock::Clock;
    use crate::driver::limits::Limits;
    use crate::driver::op::Op;
    use crate::held::home::{Home, Nowhere};
    use crate::types::terms::{LeaseId, Terms, Wait};

    const TTL: Duration = Duration::from_secs(10);

    struct Driver {
        clock: Clock,
        operations: Operations,
        _home: Arc<dyn Home>,
    }

    impl Driver {
        fn new() -> Self {
            let clock = Clock::manual();
            let home: Arc<dyn Home> = Arc::new(Nowhere);
            let limits = Limits {
                shutdown_grace: TTL,
                unavailable_wait: Wait::Forever,
            };
            let weak: Weak<dyn Home> = Arc::downgrade(&home);
            Self {
                operations: Operations::new(clock.clone(), limits, weak, "a server".into()),
                clock,
                _home: home,
            }
        }

        fn acquire(&mut self, id: u64) {
            let terms = Terms::of(LeaseId(id), "k", TTL).into();
            let (reply, _) = oneshot::channel();
            self.take(Op::Acquire { terms, reply });
        }

        fn take(&mut self, op: Op) {
            self.operations.take(self.clock.now(), op);
        }

        fn hold(&mut self, id: u64) {
            self.acquire(id);
            let since = self.clock.now();
            let id = LeaseId(id);
            let granted = Outcome::Granted {
                id,
                fence: 1,
                since,
                ttl: TTL,
            };
            self.operations.settle(since, granted);
        }

        /// Whether a caller may poll, and whether it is worth waiting for one answer.
        fn state(&self) -> (bool, bool) {
            (
                self.operations.is_unawaited(),
                self.operations.is_about_one(),
            )
        }
    }

    #[test]
    fn a_release_that_nobody_waits_for_is_in_nobodys_way() {
        let mut driver = Driver::new();
        driver.hold(1);
        assert_eq!(driver.state(), (false, false));
        let id = LeaseId(1);
        driver.take(Op::Release { id, answer: None });
        assert_eq!(driver.state(), (true, false));
        driver.acquire(2);
        assert_eq!(driver.state(), (false, true));
        driver.acquire(3);
        assert_eq!(driver.state(), (false, false));
    }

    #[test]
    fn one_that_somebody_waits_for_is_in_the_way() {
        let mut driver = Driver::new();
        driver.hold(1);
        let (answer, _) = oneshot::channel();
        driver.take(Op::Release {
            id: LeaseId(1),
            answer: Some(answer),
        });
        assert_eq!(driver.state(), (false, true));
        driver.acquire(2);
        assert_eq!(driver.state(), (false, false));
    }
}

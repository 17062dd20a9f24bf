//! Acquisitions in progress: how they begin, how long they wait, and when they are
//! given up.

use std::sync::Arc;
use std::time::Duration;

use super::Operations;
use super::acquiring::{Acquiring, Progress};
use crate::backend::Request;
use crate::base::clock::Moment;
use crate::driver::delivery::send;
use crate::held::guard::LockGuard;
use crate::telemetry::events::{self, End};
use crate::types::answer::Answer;
use crate::types::error::LockError;
use crate::types::terms::{LeaseId, Terms, Wait};

/// How long the first answer to an acquisition may take, if that is longer than its
/// wait.
const FIRST_ANSWER: Duration = Duration::from_millis(750);

/// How often the clock is read while an acquisition is in trouble, at the least.
const HEARTBEAT: Duration = Duration::from_millis(250);

/// After a longer time between two looks at the clock, the process was stopped or its
/// machine suspended: nobody could have asked the store meanwhile.
const ASLEEP: Duration = Duration::from_millis(500);

impl Operations {
    pub(super) fn acquire(&mut self, now: Moment, terms: Arc<Terms>, reply: Answer<LockGuard>) {
        if self.shutdown.is_some() {
            return send(reply, Err(LockError::ShutDown));
        }
        self.begin(now, terms, reply, false);
    }

    pub(super) fn begin(
        &mut self,
        now: Moment,
        terms: Arc<Terms>,
        reply: Answer<LockGuard>,
        takes_back: bool,
    ) {
        if !takes_back {
            events::acquiring(&terms);
        }
        let ends = match terms.wait {
            Wait::AtMost(wait) => Some(now.after(wait)),
            Wait::Forever => None,
        };
        if let Some(at) = ends {
            self.waits.insert(at, terms.id);
        }
        self.requests.push(Request::Acquire(Arc::clone(&terms)));
        self.acquiring.insert(
            terms.id,
            Acquiring {
                terms,
                reply,
                takes_back,
                started: now,
                ends,
                progress: Progress::Unanswered,
                heard: now,
                unavailable_ends: None,
            },
        );
    }

    pub(super) fn heard(&mut self, now: Moment, id: LeaseId, progress: Progress) {
        let Some(acquiring) = self.acquiring.get_mut(&id) else {
            return;
        };
        if let (Progress::Unanswered, Progress::Held(_), false) =
            (&acquiring.progress, &progress, acquiring.takes_back)
        {
            events::waiting(&acquiring.terms);
        }
        acquiring.progress = progress;
        acquiring.heard = now;
        self.limit_trouble(now, id);
        let Some(acquiring) = self.acquiring.get(&id) else {
            return;
        };
        let waited = now.since(acquiring.started);
        let over = matches!(acquiring.terms.wait, Wait::AtMost(wait) if waited >= wait);
        if over && !acquiring.progress.is_open() {
            self.give_up(now, id);
        }
    }

    /// Trouble that lasts ends an acquisition before its wait does.
    fn limit_trouble(&mut self, now: Moment, id: LeaseId) {
        let Some(acquiring) = self.acquiring.get_mut(&id) else {
            return;
        };
        if acquiring.takes_back {
            return;
        }
        if !matches!(acquiring.progress, Progress::Trouble { .. }) {
            if let Some(at) = acquiring.unavailable_ends.take() {
                self.troubles.remove(at, id);
            }
        } else if acquiring.unavailable_ends.is_none()
            && let Wait::AtMost(wait) = self.limits.unavailable_wait
        {
            let at = now.after(wait);
            acquiring.unavailable_ends = Some(at);
            self.troubles.insert(at, id);
        }
    }

    /// Does not count the time since the last call of this as trouble if the process did not
    /// run meanwhile; save a little of it, so that trouble ends the acquisition of a driver
    /// that is merely slow, too.
    pub(super) fn forgive_sleep(&mut self, now: Moment) {
        let Some(last) = self.awake.take() else {
            return;
        };
        let (Wait::AtMost(wait), slept) = (self.limits.unavailable_wait, now.since(last)) else {
            return;
        };
        if slept < ASLEEP {
            return;
        }
        let forgiven = slept.saturating_sub(HEARTBEAT.min(wait / 4));
        // The others came to be known just now.
        let known = last.after(wait);
        let before: Vec<_> = std::iter::from_fn(|| self.troubles.due(known)).collect();
        for id in before {
            let acquiring = self.acquiring.get_mut(&id);
            if let Some(at) = acquiring.and_then(|it| it.unavailable_ends.as_mut()) {
                *at = at.after(forgiven);
                self.troubles.insert(*at, id);
            }
        }
    }

    /// When the clock is to be read again, so that a sleep of the process is noticed.
    pub(super) fn next_heartbeat(&self) -> Option<Moment> {
        self.awake.map(|last| last.after(HEARTBEAT))
    }

    /// Before the server's first answer, "another holder has it" would be a guess, so
    /// that answer gets a little more time.
    pub(super) fn wait_ended(&mut self, now: Moment, id: LeaseId) {
        let Some(acquiring) = self.acquiring.get_mut(&id) else {
            return;
        };
        let call_timeout = acquiring.terms.call_timeout().min(FIRST_ANSWER);
        let answer_by = acquiring.started.after(call_timeout);
        if acquiring.progress.is_open() && now < answer_by {
            acquiring.ends = Some(answer_by);
            self.waits.insert(answer_by, id);
        } else {
            self.give_up(now, id);
        }
    }

    pub(super) fn give_up(&mut self, now: Moment, id: LeaseId) {
        if let Some(mut acquiring) = self.finish(id) {
            let progress = std::mem::replace(&mut acquiring.progress, Progress::Unanswered);
            let terms = Arc::clone(&acquiring.terms);
            acquiring.fail(now, progress, &self.server);
            self.abandon(now, terms, End::Withdrawn, None);
        }
    }

    /// Lets the wait of an acquisition end at this moment, if it would end later.
    pub(super) fn end_wait_by(&mut self, id: LeaseId, at: Moment) {
        if let Some(acquiring) = self.acquiring.get_mut(&id)
            && let Some(ends) = acquiring.ends.as_mut().filter(|ends| **ends > at)
        {
            self.waits.remove(*ends, id);
            self.waits.insert(at, id);
            *ends = at;
        }
    }

    /// Takes an acquisition out of the table.
    pub(super) fn finish(&mut self, id: LeaseId) -> Option<Acquiring> {
        let acquiring = self.acquiring.remove(&id)?;
        if let Some(at) = acquiring.ends {
            self.waits.remove(at, id);
        }
        if let Some(at) = acquiring.unavailable_ends {
            self.troubles.remove(at, id);
        }
        Some(acquiring)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Outcome;
    use crate::driver::op::Op;
    use crate::driver::operations::scene::Scene;

    const UNAVAILABLE_WAIT: Duration = Duration::from_secs(2);

    /// After how many turns an acquisition ends whose store cannot be asked, with this pause before each turn.
    fn turns_of_trouble(pause: Duration) -> usize {
        let mut scene = Scene::new(Wait::AtMost(UNAVAILABLE_WAIT));
        let mut answer = scene.acquire(1);
        scene.settle(Outcome::Trouble {
            id: LeaseId(1),
            cause: Arc::from(Box::from("refused")),
            soon: false,
        });
        scene.tick_after(Duration::ZERO);
        let ended = (1..100).find(|_| {
            scene.tick_after(pause);
            answer.try_recv().is_ok()
        });
        ended.expect("trouble that lasts ends an acquisition")
    }

    #[test]
    fn trouble_ends_an_acquisition_after_its_time() {
        assert_eq!(turns_of_trouble(HEARTBEAT), 8);
    }

    #[test]
    fn trouble_ends_the_acquisition_of_a_slow_driver_too() {
        assert_eq!(turns_of_trouble(Duration::from_millis(600)), 8);
    }

    #[test]
    fn a_sleep_that_is_longer_than_the_time_for_trouble_does_not_end_an_acquisition() {
        assert!(turns_of_trouble(3 * UNAVAILABLE_WAIT) > 1);
    }

    #[test]
    fn one_that_was_given_up_ends_with_the_last_word_of_the_store() {
        let mut scene = Scene::new(Wait::Forever);
        let id = LeaseId(1);
        let last_words = [
            Outcome::Busy { id, holder: None },
            Outcome::Failed {
                id,
                cause: Arc::from(Box::from("refused")),
            },
            Outcome::NoTicket { id },
        ];
        for last in last_words {
            let _answer = scene.acquire(1);
            scene.take(Op::Cancel(id));
            scene.settle(last);
            assert!(scene.operations.is_idle(), "{:?}", scene.operations);
        }
    }
}

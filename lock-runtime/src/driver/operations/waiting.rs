//! Acquisitions in progress: how they begin, how long they wait, and when they are
//! given up.

use std::sync::Arc;
use std::time::Duration;

use super::Operations;
use super::acquiring::{Acquiring, Progress};
use crate::backend::Request;
use crate::base::clock::Moment;
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
            let _ = reply.send(Err(LockError::ShutDown));
            return;
        }
        events::acquiring(&terms);
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
        if let (Progress::Unanswered, Progress::Held(_)) = (&acquiring.progress, &progress) {
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
    /// run meanwhile.
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
        // The others came to be known just now.
        let known = last.after(wait);
        let before: Vec<_> = std::iter::from_fn(|| self.troubles.due(known)).collect();
        for id in before {
            let acquiring = self.acquiring.get_mut(&id);
            if let Some(at) = acquiring.and_then(|it| it.unavailable_ends.as_mut()) {
                *at = at.after(slept);
                self.troubles.insert(*at, id);
            }
        }
    }

    /// When the clock is to be read again, so that a sleep of the process is noticed.
    pub(super) fn next_heartbeat(&self) -> Option<Moment> {
        self.awake.map(|last| last.after(HEARTBEAT))
    }

    /// Before the server's first answer, "held by somebody else" would be a guess, so
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

//! The acquisitions that are on the way: how long they wait, and how they end
//! without a lock.

use std::sync::Arc;
use std::time::Duration;

use super::Operations;
use crate::backend::{Cause, Request};
use crate::clock::Moment;
use crate::driver::Answer;
use crate::error::LockError;
use crate::guard::LockGuard;
use crate::holder::Holder;
use crate::observe;
use crate::terms::{Kind, LeaseId, Terms, Wait};

/// The most that the first answer to an acquisition is waited for when its wait
/// has ended.
const FIRST_ANSWER: Duration = Duration::from_millis(750);

pub(super) struct Acquiring {
    pub(super) terms: Arc<Terms>,
    pub(super) reply: Answer<LockGuard>,
    pub(super) started: Moment,
    /// Its place in `waits`.
    pub(super) ends: Option<Moment>,
    pub(super) news: News,
    /// When that was heard.
    pub(super) heard: Moment,
}

/// The last that was heard of an acquisition.
pub(super) enum News {
    Nothing,
    Held(Option<Box<Holder>>),
    Trouble(Cause),
}

impl Operations {
    pub(super) fn acquire(&mut self, now: Moment, terms: Arc<Terms>, reply: Answer<LockGuard>) {
        if self.shutdown.is_some() {
            let _ = reply.send(Err(LockError::ShutDown));
            return;
        }
        observe::acquiring(&terms);
        let ends = match terms.wait {
            Wait::AtMost(wait) => Some(now.after(wait)),
            Wait::Forever => None,
        };
        self.waits.extend(ends.map(|at| (at, terms.id)));
        self.requests.push(Request::Acquire(Arc::clone(&terms)));
        self.acquiring.insert(
            terms.id,
            Acquiring {
                terms,
                reply,
                started: now,
                ends,
                news: News::Nothing,
                heard: now,
            },
        );
    }

    pub(super) fn heard(&mut self, now: Moment, id: LeaseId, news: News) {
        let Some(acquiring) = self.acquiring.get_mut(&id) else {
            return;
        };
        if let (News::Nothing, News::Held(_)) = (&acquiring.news, &news) {
            observe::waiting(&acquiring.terms);
        }
        acquiring.news = news;
        acquiring.heard = now;
        let waited = now.since(acquiring.started);
        if matches!(acquiring.terms.wait, Wait::AtMost(wait) if waited >= wait) {
            self.give_up(now, id);
        }
    }

    /// Without a word from the server, "held by somebody else" would be a
    /// guess: the answer to the first call is waited for a little longer.
    pub(super) fn wait_ended(&mut self, now: Moment, id: LeaseId) {
        let Some(acquiring) = self.acquiring.get_mut(&id) else {
            return;
        };
        let patience = acquiring.terms.call_timeout().min(FIRST_ANSWER);
        let answer_by = acquiring.started.after(patience);
        if matches!(acquiring.news, News::Nothing) && now < answer_by {
            acquiring.ends = Some(answer_by);
            self.waits.insert((answer_by, id));
        } else {
            self.give_up(now, id);
        }
    }

    fn give_up(&mut self, now: Moment, id: LeaseId) {
        if let Some(mut acquiring) = self.finish(id) {
            let news = std::mem::replace(&mut acquiring.news, News::Nothing);
            let terms = Arc::clone(&acquiring.terms);
            acquiring.fail(now, news);
            self.abandon(terms);
        }
    }

    /// Takes an acquisition out of the table.
    pub(super) fn finish(&mut self, id: LeaseId) -> Option<Acquiring> {
        let acquiring = self.acquiring.remove(&id)?;
        if let Some(at) = acquiring.ends {
            self.waits.remove(&(at, id));
        }
        Some(acquiring)
    }
}

impl Acquiring {
    pub(super) fn differs(self, held: u32) {
        let Kind::Permits(asked) = self.terms.kind else {
            return;
        };
        self.refuse(LockError::invalid(
            "permits",
            format_args!(
                "{asked} were asked for, and the lock is held with permits = {held}, which counts until nobody holds it"
            ),
        ));
    }

    pub(super) fn fail(self, now: Moment, news: News) {
        let waited = now.since(self.started);
        let error = match news {
            News::Held(mut holder) => {
                if let Some(holder) = &mut holder {
                    holder.heard_before(now.since(self.heard));
                }
                LockError::Contended {
                    key: self.terms.key.clone(),
                    waited,
                    holder,
                }
            }
            News::Trouble(cause) => LockError::unavailable(cause),
            News::Nothing => LockError::unavailable(format!("no answer within {waited:?}")),
        };
        self.refuse(error);
    }

    pub(super) fn refuse(self, error: LockError) {
        observe::refused(&self.terms, &error);
        let _ = self.reply.send(Err(error));
    }
}

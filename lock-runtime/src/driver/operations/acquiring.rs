//! One acquisition in progress, and how it ends without a lock.

use std::sync::Arc;

use crate::base::clock::Moment;
use crate::driver::delivery::send;
use crate::held::guard::LockGuard;
use crate::telemetry::events;
use crate::types::answer::Answer;
use crate::types::error::{Cause, LockError};
use crate::types::holder::Holder;
use crate::types::terms::Terms;

pub(super) struct Acquiring {
    pub(super) terms: Arc<Terms>,
    pub(super) reply: Answer<LockGuard>,
    /// It adopts a ticket that reached nobody, to release its lock: nobody waits for it, and it goes
    /// on until the store has answered or the ticket has expired.
    pub(super) takes_back: bool,
    pub(super) started: Moment,
    /// When its wait ends; its position in `waits`.
    pub(super) ends: Option<Moment>,
    pub(super) progress: Progress,
    /// When that was heard.
    pub(super) heard: Moment,
    /// When it is given up unless the store can be asked again.
    pub(super) unavailable_ends: Option<Moment>,
}

/// The latest answer to an acquisition.
pub(super) enum Progress {
    Unanswered,
    Held(Option<Box<Holder>>),
    Trouble {
        cause: Cause,
        /// Whether an answer may come soon.
        soon: bool,
    },
}

impl Progress {
    /// Whether an answer of the store is still to come.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Unanswered | Self::Trouble { soon: true, .. })
    }
}

impl Acquiring {
    pub(super) fn fail(self, now: Moment, progress: Progress, server: &Arc<str>) {
        let waited = now.since(self.started);
        let error = match progress {
            Progress::Held(mut holder) => {
                if let Some(holder) = &mut holder {
                    holder.heard_before(now.since(self.heard));
                    holder.crowd.outlasted(waited);
                }
                LockError::Contended {
                    key: self.terms.key.clone(),
                    waited,
                    holder,
                }
            }
            Progress::Trouble { cause, .. } => LockError::unavailable_at(server, cause),
            Progress::Unanswered => {
                LockError::unavailable_at(server, format!("no answer within {waited:.0?}"))
            }
        };
        self.refuse(now, error);
    }

    pub(super) fn refuse(self, now: Moment, error: LockError) {
        if !self.takes_back {
            events::refused(&self.terms, &error, now.since(self.started));
        }
        send(self.reply, Err(error));
    }
}

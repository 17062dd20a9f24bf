//! The future of an acquisition: asks the driver for one key after the other.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use crate::base::clock::Moment;
use crate::driver::Op;
use crate::face::settings::Settings;
use crate::face::shared::Shared;
use crate::held::current::{self, Coverage};
use crate::held::guard::LockGuard;
use crate::vocabulary::error::LockError;
use crate::vocabulary::key::{Keys, LockKey};
use crate::vocabulary::terms::{LeaseId, Terms, Wait};

/// The future of an acquisition; see
/// [`LockRequest::acquire`](crate::LockRequest::acquire).
#[must_use = "futures do nothing unless polled"]
pub struct Acquire {
    progress: Progress,
}

enum Progress {
    Refused(LockError),
    Unasked(Ask),
    Asked {
        shared: Arc<Shared>,
        id: LeaseId,
        answer: oneshot::Receiver<Result<LockGuard, LockError>>,
        /// `None` where there is one key.
        several: Option<Box<Several>>,
    },
    Answered,
}

/// What is going to be asked for.
struct Ask {
    shared: Arc<Shared>,
    terms: Arc<Terms>,
    several: Option<Box<Several>>,
    reentrant: bool,
}

/// Where the acquisition of several keys stands. What is taken already is
/// renewed like every lock, and released when this is dropped.
struct Several {
    terms: Arc<Terms>,
    /// The next one at the end.
    rest: Vec<LockKey>,
    taken: Option<LockGuard>,
    /// When the wait for all of them ends.
    ends: Option<Moment>,
}

impl Acquire {
    pub(crate) fn new(shared: Arc<Shared>, settings: &Settings, keys: Keys) -> Self {
        let (terms, rest) = match settings.terms(&shared, keys) {
            Ok((terms, rest)) => (Arc::new(terms), rest),
            Err(error) => return Self::refused(error),
        };
        let several = (!rest.is_empty()).then(|| Box::new(Several::new(&terms, rest)));
        Self {
            progress: Progress::Unasked(Ask {
                shared,
                terms,
                several,
                reentrant: settings.reentrant,
            }),
        }
    }

    pub(crate) fn refused(error: LockError) -> Self {
        Self {
            progress: Progress::Refused(error),
        }
    }
}

impl Ask {
    /// Joins what the caller holds already, or sends the first question.
    fn send(self) -> Result<Progress, Result<LockGuard, LockError>> {
        let Self {
            shared,
            terms,
            mut several,
            reentrant,
        } = self;
        let rest = several.iter().flat_map(|several| &several.rest);
        let keys = std::iter::once(&terms.key).chain(rest);
        match current::coverage(&*shared.mailbox, &keys, terms.kind) {
            Coverage::Free => {}
            Coverage::Covered(lease) if reentrant => return Err(Ok(LockGuard::joined(lease))),
            Coverage::Covered(_) => {
                let key = terms.key.clone();
                return Err(Err(LockError::AlreadyHeld { key }));
            }
            Coverage::InTheWay(key) => return Err(Err(LockError::AlreadyHeld { key })),
        }
        if let (Some(several), Wait::AtMost(wait)) = (&mut several, terms.wait) {
            several.ends = Some(shared.config.clock.now().after(wait));
        }
        Ok(Progress::ask(shared, terms, several))
    }
}

impl Several {
    fn new(terms: &Arc<Terms>, rest: Vec<LockKey>) -> Self {
        Self {
            terms: Arc::clone(terms),
            rest,
            taken: None,
            ends: None,
        }
    }

    /// Adds the key that was taken last to the others; asks for the next one, or
    /// gives out the guard of all of them.
    fn go_on(
        mut self: Box<Self>,
        shared: Arc<Shared>,
        guard: LockGuard,
    ) -> Result<Progress, Result<LockGuard, LockError>> {
        let guard = guard.on_top_of(self.taken.take());
        let Some(key) = self.rest.pop() else {
            return Err(if guard.is_held() {
                Ok(guard.arrive())
            } else {
                let error = "the lease of one key ended while the others were waited for";
                Err(LockError::unavailable(error))
            });
        };
        self.taken = Some(guard);
        let now = shared.config.clock.now();
        let wait = match self.ends {
            Some(ends) => Wait::AtMost(ends.since(now)),
            None => Wait::Forever,
        };
        let terms = Terms {
            id: shared.next_id(),
            key,
            wait,
            ..Terms::clone(&self.terms)
        };
        Ok(Progress::ask(shared, Arc::new(terms), Some(self)))
    }
}

impl Progress {
    fn ask(shared: Arc<Shared>, terms: Arc<Terms>, several: Option<Box<Several>>) -> Self {
        let (reply, answer) = oneshot::channel();
        let id = terms.id;
        // A mailbox that is closed drops the reply, which is an answer.
        let _ = shared.mailbox.send(Op::Acquire { terms, reply });
        Self::Asked {
            shared,
            id,
            answer,
            several,
        }
    }
}

impl Future for Acquire {
    type Output = Result<LockGuard, LockError>;

    /// # Panics
    ///
    /// Where it is polled again after it has returned, as async functions do.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let answer = match &mut self.progress {
                Progress::Asked { answer, .. } => {
                    let answer = ready!(Pin::new(answer).poll(cx));
                    Some(answer.unwrap_or(Err(LockError::ShutDown)))
                }
                _ => None,
            };
            let progress = std::mem::replace(&mut self.progress, Progress::Answered);
            let next = match (progress, answer) {
                (
                    Progress::Asked {
                        shared,
                        several: Some(several),
                        ..
                    },
                    Some(Ok(guard)),
                ) => several.go_on(shared, guard),
                (Progress::Asked { .. }, Some(answer)) => Err(answer.map(LockGuard::arrive)),
                (Progress::Unasked(ask), _) => ask.send(),
                (Progress::Refused(error), _) => Err(Err(error)),
                _ => panic!("`Acquire` was polled after it had returned"),
            };
            match next {
                Ok(next) => self.progress = next,
                Err(answer) => return Poll::Ready(answer),
            }
        }
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        // A guard that was answered meanwhile is dropped with the receiver,
        // which releases it.
        if let Progress::Asked { shared, id, .. } = &self.progress {
            shared.mailbox.post(Op::Cancel(*id));
        }
    }
}

impl fmt::Debug for Acquire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.progress {
            Progress::Refused(_) => "Acquire(refused)",
            Progress::Unasked(_) => "Acquire(not asked yet)",
            Progress::Asked { .. } => "Acquire(asked)",
            Progress::Answered => "Acquire(answered)",
        })
    }
}

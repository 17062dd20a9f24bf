//! The future of an acquisition: joins what the caller holds, or asks the driver.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::current::{self, Standing};
use crate::driver::Op;
use crate::error::LockError;
use crate::guard::LockGuard;
use crate::key::{Keys, LockKey};
use crate::manager::{LockManager, Shared};
use crate::several::Several;
use crate::site::Site;
use crate::terms::{LeaseId, Terms};

/// The future of an acquisition; see
/// [`LockRequest::acquire`](crate::LockRequest::acquire).
#[must_use = "futures do nothing unless polled"]
pub struct Acquire {
    stage: Stage,
}

enum Stage {
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

impl Acquire {
    pub(crate) fn new(
        shared: Arc<Shared>,
        terms: Terms,
        rest: Vec<LockKey>,
        reentrant: bool,
    ) -> Self {
        let terms = Arc::new(terms);
        let several = (!rest.is_empty()).then(|| Box::new(Several::new(&terms, rest)));
        Self {
            stage: Stage::Unasked(Ask {
                shared,
                terms,
                several,
                reentrant,
            }),
        }
    }

    pub(crate) fn refused(error: LockError) -> Self {
        Self {
            stage: Stage::Refused(error),
        }
    }

    /// As an annotated function takes its lock.
    pub(crate) fn at_site(
        manager: Result<LockManager, LockError>,
        site: &'static Site,
        keys: Keys,
    ) -> Self {
        let checked = manager.and_then(|manager| keys.check().map(|()| manager));
        let manager = match checked {
            Ok(manager) => manager,
            Err(error) => return Self::refused(error),
        };
        let shared = manager.shared();
        let terms = Terms {
            id: shared.next_id(),
            key: keys.first,
            ttl: site.ttl.unwrap_or(shared.config.ttl),
            wait: site.wait.unwrap_or(shared.config.wait),
            renew: site.renew,
            kind: site.kind,
            min_hold: site.min_hold,
            max_hold: site.max_hold,
            function: Some((site.module, site.function)),
        };
        Self::new(Arc::clone(shared), terms, keys.rest, site.reentrant)
    }
}

impl Ask {
    /// Joins what the caller holds already, or sends the first question.
    fn send(self) -> Result<Stage, Result<LockGuard, LockError>> {
        let Self {
            shared,
            terms,
            mut several,
            reentrant,
        } = self;
        let rest = several.iter().flat_map(|several| several.rest());
        let keys = std::iter::once(&terms.key).chain(rest);
        match current::standing(&shared, &keys, terms.kind) {
            Standing::Free => {}
            Standing::Covered(lease) if reentrant => {
                return Err(Ok(LockGuard::join(&lease, terms)));
            }
            Standing::Covered(_) => {
                let key = terms.key.clone();
                return Err(Err(LockError::AlreadyHeld { key }));
            }
            Standing::InTheWay(key) => return Err(Err(LockError::AlreadyHeld { key })),
        }
        if let Some(several) = &mut several {
            several.begin(shared.config.clock.now());
        }
        Ok(Stage::ask(shared, terms, several))
    }
}

impl Stage {
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
            let answer = match &mut self.stage {
                Stage::Asked {
                    answer, several, ..
                } => match Pin::new(answer).poll(cx) {
                    Poll::Ready(answer) => Some(answer.unwrap_or(Err(LockError::ShutDown))),
                    Poll::Pending if several.as_mut().is_some_and(|it| it.poll_lost(cx)) => None,
                    Poll::Pending => return Poll::Pending,
                },
                _ => None,
            };
            let stage = std::mem::replace(&mut self.stage, Stage::Answered);
            let next = match (stage, answer) {
                (
                    Stage::Asked {
                        shared,
                        id,
                        several: Some(mut several),
                        ..
                    },
                    answer,
                ) => {
                    let step = several.step(&shared, id, answer);
                    step.map(|terms| Stage::ask(shared, terms, Some(several)))
                }
                (Stage::Asked { .. }, Some(answer)) => Err(answer.map(LockGuard::arrive)),
                (Stage::Unasked(ask), _) => ask.send(),
                (Stage::Refused(error), _) => Err(Err(error)),
                _ => panic!("`Acquire` was polled after it had returned"),
            };
            match next {
                Ok(stage) => self.stage = stage,
                Err(answer) => return Poll::Ready(answer),
            }
        }
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        // A guard that was answered meanwhile is dropped with the receiver,
        // which releases it.
        if let Stage::Asked { shared, id, .. } = &self.stage {
            shared.mailbox.post(Op::Cancel(*id));
        }
    }
}

impl fmt::Debug for Acquire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.stage {
            Stage::Refused(_) => "Acquire(refused)",
            Stage::Unasked(_) => "Acquire(not asked yet)",
            Stage::Asked { .. } => "Acquire(asked)",
            Stage::Answered => "Acquire(answered)",
        })
    }
}

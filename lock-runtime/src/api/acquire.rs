//! The future of an acquisition: re-enters a lock that the caller holds, or asks the driver.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::api::settings::Settings;
use crate::api::several::Several;
use crate::api::shared::Shared;
use crate::base::clock::Moment;
use crate::driver::Op;
use crate::held::current::{self, Coverage};
use crate::held::guard::LockGuard;
use crate::held::home::Home as _;
use crate::held::lease::Lease;
use crate::telemetry::spans::Traced;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::keys::Keys;
use crate::types::terms::Terms;

/// The future of an acquisition; see
/// [`LockRequest::acquire`](crate::LockRequest::acquire).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// # let locks = lock_runtime::LockManager::connect("memory:").await?;
/// let acquire = locks.lock("stock:lamp").acquire();
/// let guard = acquire.await?; // or `locks.lock("stock:lamp").await?`
/// # Ok(()) }
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Acquire {
    progress: Progress,
    span: Traced,
}

enum Progress {
    /// Boxed, since it would be the largest part of the future.
    Refused(Box<LockError>),
    Unasked(Ask),
    /// What it has got already is dropped before the handle, which may be the last one.
    Asked {
        terms: Arc<Terms>,
        /// When it was asked for first.
        asked: Moment,
        /// Whether it was asked for again, since the lock had ended before the caller was polled.
        again: bool,
        answer: oneshot::Receiver<Result<LockGuard, LockError>>,
        /// `None` where there is one key.
        several: Option<Box<Several>>,
        shared: Arc<Shared>,
    },
    Answered,
}

/// An acquisition before its first poll.
struct Ask {
    shared: Arc<Shared>,
    terms: Arc<Terms>,
    several: Option<Box<Several>>,
    reentrant: bool,
}

impl Acquire {
    pub(crate) fn new(
        shared: Arc<Shared>,
        settings: &Settings,
        keys: Result<Keys, LockError>,
    ) -> Self {
        let (terms, rest) = match keys.and_then(|keys| settings.terms(&shared, keys)) {
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
            span: Traced::default(),
        }
    }

    pub(crate) fn refused(error: LockError) -> Self {
        Self {
            progress: Progress::Refused(error.into()),
            span: Traced::default(),
        }
    }
}

impl Ask {
    fn keys(&self) -> impl Iterator<Item = &LockKey> + Clone {
        let rest = self.several.iter().flat_map(|several| several.rest());
        std::iter::once(&self.terms.key).chain(rest)
    }

    /// Re-enters a lock that the caller holds, or asks for the first key.
    fn send(self) -> Result<Progress, Result<LockGuard, LockError>> {
        let coverage = current::coverage(&*self.shared.mailbox, &self.keys(), &self.terms);
        let Self {
            shared,
            mut terms,
            mut several,
            reentrant,
        } = self;
        match coverage {
            Coverage::Free => {}
            Coverage::Covered(lease) if reentrant => {
                return Err(Ok(join(&shared, lease, terms)));
            }
            Coverage::Covered(_) => {
                let key = terms.key.clone();
                return Err(Err(LockError::AlreadyHeld { key }));
            }
            Coverage::InTheWay(key) => return Err(Err(LockError::AlreadyHeld { key })),
        }
        let holds = current::enclosing(&*shared.mailbox);
        if !holds.is_empty() {
            Arc::make_mut(&mut terms).holds = holds;
        }
        if let Some(several) = &mut several {
            several.begin(&terms, shared.config.clock.now());
        }
        Ok(Progress::ask(shared, &terms, several))
    }
}

/// Another guard of a lock that the caller holds; a limit of its own ends it sooner.
fn join(shared: &Shared, joined: Arc<Lease>, terms: Arc<Terms>) -> LockGuard {
    if terms.longest().is_none() {
        return LockGuard::joined(joined);
    }
    let limit = Lease::limit(&joined, terms);
    // If the driver is gone, the re-entered lease has ended too.
    let _ = shared.mailbox.send(Op::Limit(Arc::clone(&limit)));
    LockGuard::limited(limit)
}

impl Progress {
    fn ask(shared: Arc<Shared>, terms: &Arc<Terms>, several: Option<Box<Several>>) -> Self {
        let asked = shared.config.clock.now();
        let answer = send(&shared, terms);
        Self::Asked {
            terms: Arc::clone(terms),
            asked,
            again: false,
            answer,
            several,
            shared,
        }
    }

    /// The lock has ended before the caller was polled: asks for it anew, for the rest of the wait. If nothing is left of
    /// that, once more without waiting: the lock may well be free.
    fn ask_again(
        shared: Arc<Shared>,
        terms: &Terms,
        asked: Moment,
        again: bool,
    ) -> Result<Self, Result<LockGuard, LockError>> {
        let now = shared.config.clock.now();
        let rest = terms.wait.rest(asked, now);
        if again && rest.is_try() {
            return Err(Err(LockError::Contended {
                key: terms.key.clone(),
                waited: now.since(asked),
                holder: None,
            }));
        }
        let terms = Terms {
            id: shared.next_id(),
            ..terms.clone()
        };
        let sent = Terms {
            wait: rest,
            // It has waited, and stays a waiter.
            max_waiters: terms.max_waiters.filter(|_| rest.is_try()),
            ..terms.clone()
        };
        let answer = send(&shared, &Arc::new(sent));
        Ok(Self::Asked {
            terms: Arc::new(terms),
            asked,
            again: true,
            answer,
            several: None,
            shared,
        })
    }
}

/// Asks the driver for a lock.
fn send(shared: &Shared, terms: &Arc<Terms>) -> oneshot::Receiver<Result<LockGuard, LockError>> {
    let (reply, answer) = oneshot::channel();
    let op = Op::Acquire {
        terms: Arc::clone(terms),
        reply,
    };
    // A mailbox that is closed drops the reply, which is an answer.
    let _ = shared.mailbox.send_about(Some(&terms.key), op);
    answer
}

impl Future for Acquire {
    type Output = Result<LockGuard, LockError>;

    /// # Panics
    ///
    /// If it is polled after it has returned, as async functions do.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let answer = match &mut self.progress {
                Progress::Asked {
                    shared,
                    answer,
                    several,
                    ..
                } => match Pin::new(answer).poll(cx) {
                    Poll::Ready(answer) => {
                        shared.mailbox.help_to_deliver();
                        Some(answer.unwrap_or(Err(LockError::ShutDown)))
                    }
                    Poll::Pending if several.as_mut().is_some_and(|it| it.poll_lost(cx)) => None,
                    Poll::Pending => return Poll::Pending,
                },
                _ => None,
            };
            let progress = std::mem::replace(&mut self.progress, Progress::Answered);
            let next = match (progress, answer) {
                (
                    Progress::Asked {
                        shared,
                        terms,
                        several: Some(mut several),
                        ..
                    },
                    answer,
                ) => {
                    match several.step(&shared, terms.id, answer) {
                        Ok(terms) => Ok(Progress::ask(shared, &terms, Some(several))),
                        Err(answer) => {
                            // As in `Asked`.
                            drop(several);
                            Err(answer)
                        }
                    }
                }
                (
                    Progress::Asked {
                        shared,
                        terms,
                        asked,
                        again,
                        ..
                    },
                    Some(Ok(guard)),
                ) => match guard.deliver() {
                    Ok(guard) => Err(Ok(guard)),
                    Err(late) => {
                        drop(late);
                        Progress::ask_again(shared, &terms, asked, again)
                    }
                },
                (
                    Progress::Asked {
                        shared,
                        asked,
                        again,
                        ..
                    },
                    Some(Err(mut error)),
                ) => {
                    if again && let LockError::Contended { waited, .. } = &mut error {
                        *waited = shared.config.clock.now().since(asked);
                    }
                    Err(Err(error))
                }
                (Progress::Unasked(ask), _) => {
                    self.span = Traced::wait(&ask.terms, ask.keys());
                    ask.send()
                }
                (Progress::Refused(error), _) => Err(Err(*error)),
                _ => panic!("`Acquire` was polled after it had returned"),
            };
            match next {
                Ok(next) => self.progress = next,
                Err(answer) => {
                    match &answer {
                        Ok(guard) => self.span.granted(guard.fencing_token().get()),
                        Err(error) => self.span.fails(error),
                    }
                    return Poll::Ready(answer);
                }
            }
        }
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        // A guard that arrived meanwhile is dropped with the receiver, and so is
        // its lock released.
        if let Progress::Asked { shared, terms, .. } = &self.progress {
            shared.mailbox.post(Op::Cancel(terms.id));
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

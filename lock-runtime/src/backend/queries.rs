//! The queries that a store has not answered yet: futures that ask the server by way of the
//! backend, which polls them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot};

use crate::types::answer::Reply;
use crate::types::error::Cause;
use crate::types::health::{Health, LastError};

/// Queries that ask for `A`, and probes of connections, which `C` distinguishes.
pub(crate) struct Queries<A, C = ()> {
    open: Vec<Open<C>>,
    asker: Asker<A>,
    asked: mpsc::UnboundedReceiver<A>,
}

type Open<C> = Pin<Box<dyn Future<Output = Option<Probed<C>>> + Send>>;

impl<A, C: Send + 'static> Queries<A, C> {
    pub(crate) fn new() -> Self {
        let (calls, asked) = mpsc::unbounded_channel();
        Self {
            open: Vec::new(),
            asker: Asker(calls),
            asked,
        }
    }

    pub(crate) fn asker(&self) -> Asker<A> {
        self.asker.clone()
    }

    /// Answers a query with the result of its future, and drops the future once its caller is gone.
    pub(crate) fn begin<T: Send + 'static>(
        &mut self,
        mut reply: Reply<T>,
        found: impl Future<Output = Result<T, Cause>> + Send + 'static,
    ) {
        self.open.push(Box::pin(async move {
            tokio::select! {
                biased;
                () = reply.closed() => {}
                found = found => drop(reply.send(found)),
            }
            None
        }));
    }

    /// The same for a query whose answer the backend completes: how long an echo took.
    pub(crate) fn probe(
        &mut self,
        connection: C,
        reply: Reply<Health>,
        echo: impl Future<Output = Result<Duration, Cause>> + Send + 'static,
    ) {
        self.open.push(Box::pin(async move {
            Some(Probed {
                connection,
                echo: echo.await,
                reply,
            })
        }));
    }

    /// Goes on with each; returns the probes that have ended.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Vec<Probed<C>> {
        let mut probed = Vec::new();
        self.open.retain_mut(|query| match query.as_mut().poll(cx) {
            Poll::Ready(end) => {
                probed.extend(end);
                false
            }
            Poll::Pending => true,
        });
        probed
    }

    /// The next question.
    pub(crate) fn next_asked(&mut self) -> Option<A> {
        self.asked.try_recv().ok()
    }
}

impl<A, C> fmt::Debug for Queries<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queries({})", self.open.len())
    }
}

/// Asks the server by way of the backend.
#[derive(Debug)]
pub(crate) struct Asker<A>(mpsc::UnboundedSender<A>);

impl<A> Asker<A> {
    /// Asks at once; the answer may be awaited later.
    pub(crate) fn ask<T>(
        &self,
        call: impl FnOnce(oneshot::Sender<T>) -> A,
    ) -> oneshot::Receiver<T> {
        let (answer, answered) = oneshot::channel();
        // The backend has the other end, and lives as long as its queries.
        let _ = self.0.send(call(answer));
        answered
    }
}

impl<A> Clone for Asker<A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// A probe that has ended.
pub(crate) struct Probed<C> {
    pub(crate) connection: C,
    /// How long it took.
    pub(crate) echo: Result<Duration, Cause>,
    pub(crate) reply: Reply<Health>,
}

impl<C> Probed<C> {
    /// Answers from the state of the connection: the last error, which is over once the connection
    /// is up again, and the end of a quarantine.
    pub(crate) fn answer(
        self,
        is_up: bool,
        last_error: Option<LastError>,
        quarantined_until: Option<SystemTime>,
    ) {
        let health = match self.echo {
            Ok(took) => Health {
                grants: quarantined_until.is_none(),
                quarantined_until,
                last_error,
                ..Health::reached(took)
            },
            Err(cause) => {
                let current = last_error.filter(|_| !is_up);
                Health::unreachable(current.unwrap_or_else(|| LastError::now(&cause)))
            }
        };
        let _ = self.reply.send(Ok(health));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;

    fn answered(echo: Result<Duration, Cause>, is_up: bool) -> Health {
        let (reply, mut answer) = oneshot::channel();
        let connection = ();
        let probed = Probed {
            connection,
            echo,
            reply,
        };
        probed.answer(is_up, Some(LastError::now("before")), None);
        answer.try_recv().expect("an answer").expect("a health")
    }

    #[test]
    fn an_error_that_is_over_is_not_why_a_probe_fails() {
        let failed = || Err(Arc::new(io::Error::other("now")) as Cause);
        for (is_up, says) in [(true, "now"), (false, "before")] {
            let health = answered(failed(), is_up);
            assert!(!health.connected);
            assert_eq!(&*health.last_error.expect("an error").message, says);
        }
        let health = answered(Ok(Duration::ZERO), true);
        assert!(health.connected && health.last_error.is_some());
    }

    #[test]
    fn nothing_more_is_asked_for_a_caller_that_is_gone() {
        let mut queries: Queries<oneshot::Sender<()>> = Queries::new();
        let asker = queries.asker();
        let (reply, answered) = oneshot::channel();
        queries.begin(reply, async move {
            while asker.ask(|by| by).await.is_ok() {}
            Ok(())
        });
        let mut cx = Context::from_waker(std::task::Waker::noop());
        queries.poll(&mut cx);
        let step = queries.next_asked().expect("the first step");
        drop(answered);
        step.send(()).expect("it is awaited");
        queries.poll(&mut cx);
        assert!(queries.next_asked().is_none(), "a second step");
        assert!(queries.open.is_empty());
    }
}

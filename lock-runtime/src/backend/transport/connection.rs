//! A connection that is up, or the attempts to open one.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::backoff::Backoff;
use super::silence::Silence;
use crate::base::clock::Moment;
use crate::telemetry::events;
use crate::types::error::Cause;
use crate::types::health::LastError;

/// Keeps a connection up: `O` is the result of an attempt, and `U` an open connection.
pub(crate) struct Connection<O, U> {
    /// Its number among those of the manager, for events.
    pub(crate) number: usize,
    state: State<O, U>,
    pub(crate) backoff: Backoff,
    pub(crate) silence: Silence,
    /// The time at which this one, or the last one, was opened; not by the clock of leases, which tests may
    /// stop.
    opened: Instant,
    pub(crate) last_error: Option<LastError>,
}

enum State<O, U> {
    Down { until: Moment },
    Opening(Pin<Box<dyn Future<Output = O> + Send>>),
    Up(U),
}

impl<O, U> Connection<O, U> {
    /// Not open yet; to one of so many servers, which are tried in turn.
    pub(crate) fn new(number: usize, servers: usize, now: Moment) -> Self {
        Self {
            number,
            state: State::Down { until: now },
            backoff: Backoff::new(servers),
            silence: Silence::since(now),
            opened: Instant::now(),
            last_error: None,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(self.state, State::Up(_))
    }

    pub(crate) fn up(&self) -> Option<&U> {
        match &self.state {
            State::Up(up) => Some(up),
            _ => None,
        }
    }

    pub(crate) fn up_mut(&mut self) -> Option<&mut U> {
        match &mut self.state {
            State::Up(up) => Some(up),
            _ => None,
        }
    }

    /// Begins an attempt with `open` when one is due; its result, once it has ended.
    pub(crate) fn poll_attempt<F>(
        &mut self,
        cx: &mut Context<'_>,
        now: Moment,
        open: impl FnOnce(&Backoff) -> F,
    ) -> Option<O>
    where
        F: Future<Output = O> + Send + 'static,
    {
        if let State::Down { until } = self.state
            && until <= now
        {
            self.state = State::Opening(Box::pin(open(&self.backoff)));
        }
        let State::Opening(opening) = &mut self.state else {
            return None;
        };
        let Poll::Ready(result) = opening.as_mut().poll(cx) else {
            return None;
        };
        self.dial_at(now);
        Some(result)
    }

    /// The attempt has succeeded.
    pub(crate) fn opened(&mut self, now: Moment, up: U) {
        events::connected(self.number);
        self.state = State::Up(up);
        self.opened = Instant::now();
        self.silence.heard(now);
    }

    /// The attempt has failed, or the connection was of no use.
    pub(crate) fn failed(&mut self, now: Moment, cause: &Cause) {
        let pause = self.backoff.failed();
        self.down(now, pause, cause);
    }

    /// The server answers, and does not serve.
    pub(crate) fn refused(&mut self, now: Moment, cause: &Cause) {
        let pause = self.backoff.refused();
        self.down(now, pause, cause);
    }

    /// The connection has ended, or is dropped.
    pub(crate) fn broken(&mut self, now: Moment, cause: &Cause) {
        self.taken(now, cause);
    }

    /// The same for a connection that is still of use. Returns it.
    pub(crate) fn taken(&mut self, now: Moment, cause: &Cause) -> Option<U> {
        let pause = self.backoff.broken(self.opened.elapsed());
        self.down(now, pause, cause)
    }

    /// Returns the connection that was up.
    fn down(&mut self, now: Moment, pause: Duration, cause: &Cause) -> Option<U> {
        let until = now.after(pause);
        self.note(cause);
        match std::mem::replace(&mut self.state, State::Down { until }) {
            State::Up(up) => {
                events::disconnected(self.number, cause);
                Some(up)
            }
            _ => None,
        }
    }

    /// Begins the next attempt then, whatever is being tried now.
    pub(crate) fn dial_at(&mut self, until: Moment) {
        self.state = State::Down { until };
    }

    /// When something is due that no event announces.
    pub(crate) fn next_wakeup(&self, limit: Option<Moment>) -> Option<Moment> {
        match self.state {
            State::Down { until } => Some(until),
            State::Opening(_) => None,
            State::Up(_) => self.silence.ends(limit),
        }
    }

    /// Keeps an error for probes.
    pub(crate) fn note(&mut self, cause: &Cause) {
        self.last_error = Some(LastError::now(cause));
    }
}

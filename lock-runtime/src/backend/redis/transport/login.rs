//! Credentials that expire: logs in again on a connection that stays open.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use redis::{RedisResult, Value};

use super::wire::{Answers, Wire};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::transport::logins::Logins;
use crate::base::clock::Moment;
use crate::types::credentials::{Asked, Credentials};
use crate::types::error::Cause;

/// How long after a failure the provider is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// The login of one connection, and of that to the replicas beside it.
pub(super) struct Login {
    logins: Logins,
    state: State,
    /// Whether something was sent that the next poll of the wire writes.
    sent: bool,
}

enum State {
    /// Until the connection ends.
    Valid,
    Until(Moment),
    Asking(Asked),
    /// On each of its connections that has not answered yet.
    Sent(Vec<Answers>, Option<Duration>),
}

impl Login {
    pub(super) fn new(logins: Logins, now: Moment, expires_in: Option<Duration>) -> Self {
        Self {
            logins,
            state: State::valid(now, expires_in),
            sent: false,
        }
    }

    pub(super) fn next_wakeup(&self) -> Option<Moment> {
        match self.state {
            State::Until(at) => Some(at),
            _ => None,
        }
    }

    /// Asks for new credentials in good time, and sends them over each of these connections; what
    /// fails is tried again.
    pub(super) fn poll<'a>(
        &mut self,
        cx: &mut Context<'_>,
        now: Moment,
        wires: impl Iterator<Item = &'a Wire>,
    ) -> Result<(), Cause> {
        if let State::Until(at) = self.state
            && at <= now
            && let Some(asked) = self.logins.ask()
        {
            self.state = State::Asking(asked);
        }
        if let State::Asking(asked) = &mut self.state
            && let Poll::Ready(answer) = asked.as_mut().poll(cx)
        {
            let credentials = answer.inspect_err(|_| self.pause(now))?;
            self.sent = true;
            let answers = wires.map(|wire| send(wire, &credentials)).collect();
            self.state = State::Sent(answers, credentials.expires_in);
        }
        if let State::Sent(answers, expires_in) = &mut self.state {
            let expires_in = *expires_in;
            let mut failure = None;
            answers.retain_mut(|answers| match Wire::answered(answers).map(accepted) {
                None => true,
                Some(answer) => {
                    failure = answer.err().or(failure.take());
                    false
                }
            });
            let is_done = answers.is_empty();
            if let Some(cause) = failure {
                self.pause(now);
                return Err(cause);
            }
            if is_done {
                self.state = State::valid(now, expires_in);
            }
        }
        Ok(())
    }

    fn pause(&mut self, now: Moment) {
        self.state = State::Until(now.after(PAUSE));
    }

    /// Whether something was sent since the last time.
    pub(super) fn take_sent(&mut self) -> bool {
        std::mem::take(&mut self.sent)
    }
}

impl State {
    /// A quarter of the time is left for failures.
    fn valid(now: Moment, expires_in: Option<Duration>) -> Self {
        match expires_in {
            Some(time) => Self::Until(now.after(time.mul_f64(0.75).max(PAUSE / 2))),
            None => Self::Valid,
        }
    }
}

/// The server's answer to a login.
fn accepted(answer: RedisResult<Vec<Value>>) -> Result<(), Cause> {
    let values = answer.map_err(|error| Arc::new(error) as Cause)?;
    match values.first() {
        Some(Value::ServerError(error)) => Err(Trouble::from_server(error).cause()),
        _ => Ok(()),
    }
}

fn send(wire: &Wire, credentials: &Credentials) -> Answers {
    let mut pipeline = redis::pipe();
    pipeline
        .cmd("AUTH")
        .arg(&credentials.user)
        .arg(&credentials.password);
    wire.send(pipeline, 0)
}

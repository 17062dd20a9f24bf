//! Credentials that expire: logs in again on a connection that stays open.

use std::task::{Context, Poll};
use std::time::Duration;

use redis::Value;

use super::wire::{Answers, Wire};
use crate::base::clock::Moment;
use crate::vocabulary::credentials::{Asked, Credentials, Provider};

/// How long after a failure the provider is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// The login of one connection.
pub(super) struct Login {
    provider: Option<Provider>,
    state: State,
    /// Whether something was sent that the next poll of the wire writes.
    sent: bool,
}

enum State {
    /// Until the connection ends.
    Valid,
    Until(Moment),
    Asking(Asked),
    Sent(Answers, Option<Duration>),
}

impl Login {
    pub(super) fn new(
        provider: Option<Provider>,
        now: Moment,
        expires_in: Option<Duration>,
    ) -> Self {
        Self {
            provider,
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

    /// Asks for new credentials in good time, and sends them.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, now: Moment, wire: &Wire) {
        if let (State::Until(at), Some(provider)) = (&self.state, &self.provider)
            && *at <= now
        {
            self.state = State::Asking(provider.ask());
        }
        if let State::Asking(asked) = &mut self.state
            && let Poll::Ready(answer) = asked.as_mut().poll(cx)
        {
            self.state = match answer {
                Ok(credentials) => {
                    self.sent = true;
                    State::Sent(send(wire, &credentials), credentials.expires_in)
                }
                Err(_) => State::Until(now.after(PAUSE)),
            };
        }
        if let State::Sent(answers, expires_in) = &mut self.state
            && let Some(answer) = Wire::answered(answers)
        {
            let accepted = answer.is_ok_and(|values| {
                !values
                    .iter()
                    .any(|value| matches!(value, Value::ServerError(_)))
            });
            self.state = if accepted {
                State::valid(now, *expires_in)
            } else {
                State::Until(now.after(PAUSE))
            };
        }
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

fn send(wire: &Wire, credentials: &Credentials) -> Answers {
    let mut pipeline = redis::pipe();
    pipeline
        .cmd("AUTH")
        .arg(&credentials.user)
        .arg(&credentials.password);
    wire.send(pipeline, 0)
}

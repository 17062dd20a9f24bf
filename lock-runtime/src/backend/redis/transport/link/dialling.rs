//! How a link gets a connection, and what becomes of it when that is lost.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::doubts::Question;
use super::others::replaced_by;
use super::{FIRST_PAUSE, Link, State};
use crate::backend::redis::protocol::reply::{ServerSaid, Trouble};
use crate::backend::redis::redlock::clocks::ahead;
use crate::backend::redis::transport::connect::{Caller, Opened, closed};
use crate::backend::redis::transport::desk::Desk;
use crate::backend::redis::transport::login::Login;
use crate::backend::redis::transport::replicas::Replicas;
use crate::backend::redis::transport::wire::Wire;
use crate::base::clock::Moment;
use crate::telemetry::events;
use crate::types::error::Cause;
use crate::types::health::LastError;

const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// A server that answers may serve again at any time, and what is held on it has to be
/// renewed.
const LONGEST_PAUSE_OF_ONE_THAT_ANSWERS: Duration = Duration::from_millis(100);

impl<D: Desk> Link<D> {
    /// Connects if there is no connection, and drops one that has gone silent. Returns
    /// the error of an attempt that has failed.
    pub(crate) fn poll_connection(
        &mut self,
        cx: &mut Context<'_>,
        now: Moment,
    ) -> Result<(), Trouble> {
        if self.silent_at().is_some_and(|at| at <= now) && !self.grant_grace(now) {
            let cause = ServerSaid("the server does not answer".into());
            self.broken(now, Arc::new(cause));
        }
        if let State::Down { until } = self.state
            && until <= now
        {
            self.dial();
        }
        if let State::Connecting(opening) = &mut self.state
            && let Poll::Ready(result) = opening.as_mut().poll(cx)
        {
            match result {
                Ok(_) if self.ended => {
                    let trouble = Trouble::from_connecting(closed(), &self.names);
                    return Err(self.dial_failed(now, trouble));
                }
                Ok(opened) => match self.successor(&opened) {
                    Some(trouble) => return Err(self.dial_failed(now, trouble)),
                    None => self.opened(now, opened),
                },
                Err(trouble) => return Err(self.dial_failed(now, trouble)),
            }
        }
        if let State::Up { wire, .. } = &self.state
            && let Err(cause) = self.login.poll(cx, now, wire)
        {
            events::login_failed(self.number, &cause);
            self.last_error = Some(LastError::now(&cause));
        }
        Ok(())
    }

    fn dial(&mut self) {
        self.generation += 1;
        self.ended = false;
        let dialer = self.dialer.clone();
        let caller = Caller {
            names: Arc::clone(&self.names),
            number: self.number,
            generation: self.generation,
            old: self.identity.clone(),
            proven: self.proven,
        };
        self.state = State::Connecting(Box::pin(async move { dialer.open(&caller).await }));
    }

    /// Why a server is not used that has been opened: sentinels have named another one
    /// since it was found.
    fn successor(&self, opened: &Opened) -> Option<Trouble> {
        let host = self.dialer.successor(opened.master.as_ref()?)?;
        Some(Trouble::NotNow(Arc::new(replaced_by(&host))))
    }

    fn opened(&mut self, now: Moment, opened: Opened) {
        events::connected(self.number);
        self.identity.clone_from(&opened.identity);
        let clock = opened.identity.and_then(|it| it.clock);
        self.clock_ahead = clock.map(|(theirs, asked)| {
            // As it would be now.
            let theirs = Duration::from_micros(theirs) + asked.elapsed();
            ahead(theirs, now)
        });
        if let Some(names) = &opened.names {
            self.names = Arc::new(names.clone());
        }
        self.master.clone_from(&opened.master);
        self.login = Login::new(self.dialer.provider.clone(), now, opened.expires_in);
        self.proven = true;
        let needed = self.dialer.replicas;
        self.state = State::Up {
            standing: opened.standing,
            wire: Wire::new(opened.connection, opened.io),
            replicas: opened
                .replicas
                .map(|(connection, io)| Box::new(Replicas::new(Wire::new(connection, io), needed))),
        };
        self.opened = now;
        self.role = Question::of_role(&self.dialer);
        self.last_answer = now;
        self.grace = None;
        self.queue.quarantined(now, opened.quarantine);
        self.queue.connected(now);
    }

    fn dial_failed(&mut self, now: Moment, trouble: Trouble) -> Trouble {
        let longest = if trouble.is_replica() {
            LONGEST_PAUSE_OF_ONE_THAT_ANSWERS
        } else {
            LONGEST_PAUSE
        };
        self.pause_from(now, now, longest);
        self.last_error = Some(LastError::now(&trouble.cause()));
        self.queue.disconnected(trouble.clone());
        trouble
    }

    /// The next attempt is due when the pause has passed since then, and follows after a
    /// longer one if that has to be waited for.
    fn pause_from(&mut self, since: Moment, now: Moment, longest: Duration) {
        let due = since.after(self.pause.mul_f64(0.5 + fastrand::f64()));
        if due > now {
            self.pause = (self.pause * 2).min(longest);
        }
        self.state = State::Down {
            until: due.max(now),
        };
    }

    /// Something that was asked has been done.
    pub(super) fn has_worked(&mut self) {
        self.pause = FIRST_PAUSE;
    }

    /// Drops the connection; a new one is dialled at once, unless this one was opened just
    /// now.
    pub(crate) fn broken(&mut self, now: Moment, cause: Cause) {
        if !self.is_up() {
            return;
        }
        events::disconnected(self.number, &cause);
        self.last_error = Some(LastError::now(&cause));
        self.pause_from(self.opened, now, LONGEST_PAUSE_OF_ONE_THAT_ANSWERS);
        for pipeline in std::mem::take(&mut self.in_flight) {
            self.unknown(now, pipeline.sent, &cause);
        }
        // Calls that were not sent yet are decided anew.
        let unsent = self.queue.calls();
        self.unknown(now, unsent, &cause);
        self.queue.disconnected(Trouble::Unknown(cause));
    }
}

//! The connection that is up, or the attempts to open one to each server in turn.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::Context;

use super::dialer::{Dialer, Opened};
use super::open::{Incoming, Open};
use super::server::Server;
use crate::backend::postgres::protocol::answer::Answer;
use crate::backend::postgres::protocol::call::Call;
use crate::backend::postgres::protocol::notification::Notification;
use crate::backend::sql::refusals::Refusals;
use crate::backend::sql::session::Session;
use crate::backend::sql::trouble::Trouble;
use crate::backend::transport::connection::Connection;
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::health::LastError;

/// A connection, and everything that goes over it. `T` tells calls apart.
pub(crate) struct Link<T> {
    dialer: Dialer,
    session: Session,
    connection: Connection<Result<Opened, Trouble>, Open<T>>,
    refusals: Refusals,
}

/// An event of a link.
#[derive(Debug)]
pub(crate) enum LinkEvent<T> {
    /// The connection takes calls.
    Opened(Server),
    /// An attempt has failed.
    Failed(Trouble),
    /// The connection has ended. The answers to these calls will not come; the calls may have
    /// been carried out or not.
    Broken(Cause, Vec<T>),
    Answer(T, Answer),
    Notification(Notification),
}

impl<T> Link<T> {
    /// Not connected yet; `number` is its own among those of the manager.
    pub(crate) fn new(number: usize, dialer: Dialer, session: Session, now: Moment) -> Self {
        Self {
            connection: Connection::new(number, dialer.hosts(), now),
            refusals: Refusals::new(dialer.hosts()),
            dialer,
            session,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.connection.is_up()
    }

    /// Whether an answer is due.
    pub(crate) fn awaits_answer(&self) -> bool {
        self.connection.up().is_some_and(Open::awaits_answer)
    }

    /// Whether it is open, and all is answered.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_up() && !self.awaits_answer()
    }

    /// The last error.
    pub(crate) fn last_error(&self) -> Option<LastError> {
        self.connection.last_error.clone()
    }

    /// When something is due that no event announces.
    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        self.connection.next_wakeup(self.answer_by())
    }

    /// Sends calls with the next poll, in one write unless a pooler is in between; `false` if there are none, or the
    /// connection is not up.
    pub(crate) fn send(&mut self, now: Moment, calls: impl IntoIterator<Item = (Call, T)>) -> bool {
        let open = self.connection.up_mut();
        open.is_some_and(|open| open.send(now, calls))
    }

    /// Connects if there is no connection, writes what was sent, and reads what has come in. To
    /// be called until there are no news.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, now: Moment) -> Option<LinkEvent<T>> {
        if let Some(result) = self.poll_attempt(cx, now) {
            return Some(match result {
                Ok(opened) => self.opened(now, opened),
                Err(trouble) => self.failed(now, trouble),
            });
        }
        // An answer that came in before the connection ended still counts.
        let event = match self.next_event(now) {
            Ok(None) => {
                self.connection.up_mut()?.poll(cx, now);
                self.next_event(now)
            }
            event => event,
        };
        match event {
            Ok(Some(event)) => Some(event),
            Ok(None) => {
                let answer_by = self.answer_by();
                let is_over = self.connection.silence.is_over(now, answer_by);
                let silence = || Arc::new(io::Error::other("the server does not answer"));
                is_over.then(|| self.broken(now, silence()))
            }
            Err(cause) => Some(self.broken(now, cause)),
        }
    }

    fn poll_attempt(
        &mut self,
        cx: &mut Context<'_>,
        now: Moment,
    ) -> Option<Result<Opened, Trouble>> {
        self.connection.poll_attempt(cx, now, |backoff| {
            let dialer = self.dialer.clone();
            let timeout = backoff.attempt(dialer.connect_timeout);
            dialer.open(backoff.server, self.session, timeout)
        })
    }

    /// The event of the messages that have come in; an error if the connection cannot be used any more.
    fn next_event(&mut self, now: Moment) -> Result<Option<LinkEvent<T>>, Cause> {
        while let Some(open) = self.connection.up_mut()
            && let Some(news) = open.incoming()?
        {
            self.connection.silence.heard(now);
            match news {
                Incoming::Nothing => {}
                Incoming::Notification(notification) => {
                    return Ok(Some(LinkEvent::Notification(notification)));
                }
                Incoming::Answer(to, answer) => {
                    if answer.result.is_ok() {
                        self.connection.backoff.worked();
                    }
                    return Ok(Some(LinkEvent::Answer(to, answer)));
                }
            }
        }
        Ok(None)
    }

    fn opened(&mut self, now: Moment, opened: Opened) -> LinkEvent<T> {
        let server = opened.server;
        self.session = server.session;
        self.refusals.connected();
        self.connection.opened(now, Open::new(opened));
        LinkEvent::Opened(server)
    }

    fn failed(&mut self, now: Moment, trouble: Trouble) -> LinkEvent<T> {
        LinkEvent::Failed(self.refusals.failed(now, &mut self.connection, trouble))
    }

    /// Drops the connection; a new one is opened at once, unless this one was opened just now.
    fn broken(&mut self, now: Moment, cause: Cause) -> LinkEvent<T> {
        let open = self.connection.up_mut();
        let unanswered = open.map(Open::unanswered).unwrap_or_default();
        self.connection.broken(now, &cause);
        LinkEvent::Broken(cause, unanswered)
    }

    /// Until when an answer must come in.
    fn answer_by(&self) -> Option<Moment> {
        self.connection.up()?.answer_by(&self.connection.silence)
    }
}

impl<T> Drop for Link<T> {
    fn drop(&mut self) {
        if let Some(open) = self.connection.up_mut() {
            open.close();
        }
    }
}

impl<T> fmt::Debug for Link<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("number", &self.connection.number)
            .field("session", &self.session)
            .field("up", &self.is_up())
            .finish_non_exhaustive()
    }
}

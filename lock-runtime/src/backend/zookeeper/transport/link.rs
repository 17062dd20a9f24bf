//! The connection that is up, or the attempts to open one to each server in turn.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use super::connect::{Dialer, Opened};
use super::wire::Wire;
use crate::backend::transport::connection::Connection;
use crate::backend::zookeeper::call::{Call, Recipient};
use crate::backend::zookeeper::protocol::connect::Identity;
use crate::backend::zookeeper::protocol::op::Op;
use crate::backend::zookeeper::protocol::reply::{
    Answer, Expected, Message, Packet, Reply, Trouble, read,
};
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::health::LastError;

/// How long a server has to answer until it counts as one that works.
const LASTING: Duration = Duration::from_secs(1);

/// A connection, and everything that goes over it.
pub(crate) struct Link {
    dialer: Dialer,
    connection: Connection<Result<Opened, Cause>, Wire>,
    /// When this connection, or the last one, was established.
    established: Moment,
    /// Whether the server has answered a request over it.
    is_of_use: bool,
    /// The last change that a server has reported.
    seen: i64,
    number: i32,
    in_flight: VecDeque<InFlight>,
    /// How long a server may leave a request unanswered.
    call_timeout: Duration,
    /// The connection of a former session, and when that session is to be closed.
    former: Option<(Moment, Wire)>,
}

/// A request whose answer has not come in.
struct InFlight {
    number: i32,
    at: Moment,
    expected: Expected,
    to: Recipient,
}

/// An event of a link.
pub(crate) enum LinkEvent {
    /// A server has answered to the request for a session.
    Opened(Opened),
    /// An attempt has failed.
    Failed(Cause),
    /// The connection has ended, and these answers will not come.
    Broken(Cause, Vec<Recipient>),
    Reply(Recipient, Result<Reply, Trouble>),
    Message(Message),
}

impl Link {
    pub(crate) fn new(dialer: Dialer, now: Moment) -> Self {
        Self {
            connection: Connection::new(0, dialer.servers(), now),
            dialer,
            established: now,
            is_of_use: false,
            seen: 0,
            number: 0,
            in_flight: VecDeque::new(),
            call_timeout: Duration::MAX,
            former: None,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.connection.is_up()
    }

    /// Whether it is open, and all is answered.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_up() && self.in_flight.is_empty()
    }

    pub(crate) fn seen(&self) -> i64 {
        self.seen
    }

    pub(crate) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    pub(crate) fn last_error(&self) -> Option<&LastError> {
        self.connection.last_error.as_ref()
    }

    /// Connects if there is no connection, asking for `session` to go on; writes what was
    /// sent, and reads what has come in. To be called until nothing is new.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        now: Moment,
        session: Option<&Identity>,
    ) -> Option<LinkEvent> {
        if let Some((_, mut wire)) = self.former.take_if(|(at, _)| *at <= now) {
            say_good_bye(&mut wire, &self.good_bye());
        }
        let opened = self.connection.poll_attempt(cx, now, |backoff| {
            let dialer = self.dialer.clone();
            // The session does not wait for longer.
            let timeout = backoff.stretched(self.call_timeout);
            let timeout = timeout.min(backoff.attempt(dialer.connect_timeout));
            dialer.open(backoff.server, session.cloned(), self.seen, timeout)
        });
        match opened {
            Some(Ok(opened)) => return Some(LinkEvent::Opened(opened)),
            Some(Err(cause)) => {
                self.connection.failed(now, &cause);
                return Some(LinkEvent::Failed(cause));
            }
            None => {}
        }
        let wire = self.connection.up_mut()?;
        // An answer that came in before the connection ended still counts.
        let polled = wire.poll(cx);
        let event = match wire.packet() {
            Ok(Some(packet)) => self.received(now, &packet),
            Ok(None) => polled.map(|()| None),
            Err(error) => Err(error),
        };
        let answer_by = self.answer_by();
        match event {
            Ok(Some(event)) => Some(event),
            Ok(None) if self.connection.silence.is_over(now, answer_by) => {
                let silence = io::Error::other("the server does not answer");
                Some(self.broken(now, Arc::new(silence)))
            }
            Ok(None) => None,
            Err(error) => Some(self.broken(now, Arc::new(error))),
        }
    }

    /// The connection belongs to a session. The server may leave requests unanswered for
    /// `call_timeout` from now on.
    pub(crate) fn established(&mut self, now: Moment, opened: Opened, call_timeout: Duration) {
        self.call_timeout = call_timeout;
        self.established = now;
        self.is_of_use = false;
        self.connection.opened(now, opened.wire);
    }

    /// Sends requests with the next poll; `false` if there were none.
    pub(crate) fn send(&mut self, now: Moment, calls: Vec<Call>) -> bool {
        let Some(wire) = self.connection.up_mut() else {
            return false;
        };
        let any = !calls.is_empty();
        for Call { op, to } in calls {
            self.number = self.number.wrapping_add(1).max(1);
            let (number, packet) = op.encode(self.number, self.dialer.access());
            wire.send(&packet);
            self.in_flight.push_back(InFlight {
                number,
                at: now,
                expected: op.expected(),
                to,
            });
        }
        any
    }

    /// Ends the connection, and tries another server. One that answered nothing counts as an
    /// attempt that failed, so that servers that are slow get more time.
    pub(crate) fn broken(&mut self, now: Moment, cause: Cause) -> LinkEvent {
        if self.is_of_use {
            self.connection.backoff.answered();
            self.connection.broken(now, &cause);
        } else {
            self.connection.failed(now, &cause);
        }
        LinkEvent::Broken(cause, self.unanswered())
    }

    /// Ends the connection, and closes its session at that time.
    pub(crate) fn leave(&mut self, now: Moment, at: Moment, cause: Cause) -> LinkEvent {
        self.former = self.connection.taken(now, &cause).map(|wire| (at, wire));
        LinkEvent::Broken(cause, self.unanswered())
    }

    fn unanswered(&mut self) -> Vec<Recipient> {
        self.in_flight.drain(..).map(|it| it.to).collect()
    }

    /// Ends an attempt for a session that has ended; the next session may end as soon.
    pub(crate) fn refused(&mut self, now: Moment, cause: &Cause) {
        self.connection.refused(now, cause);
    }

    /// The session is not to go on: the next attempt asks for another one.
    pub(crate) fn forget_session(&mut self) {
        // The servers may have been restored to an earlier state.
        self.seen = 0;
        self.call_timeout = Duration::MAX;
    }

    /// Says good-bye as far as that needs no waiting.
    pub(crate) fn close(&mut self) {
        let packet = self.good_bye();
        if let Some(wire) = self.connection.up_mut() {
            say_good_bye(wire, &packet);
        }
    }

    fn good_bye(&self) -> Vec<u8> {
        Op::Close.encode(self.number, self.dialer.access()).1
    }

    /// When something is due that no event announces.
    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        let former = self.former.as_ref().map(|(at, _)| *at);
        let connection = self.connection.next_wakeup(self.answer_by());
        former.into_iter().chain(connection).min()
    }

    /// Until when an answer must come in. Another server may be faster; if none is, they get more
    /// time.
    fn answer_by(&self) -> Option<Moment> {
        let oldest = self.in_flight.front()?;
        let call_timeout = self.connection.backoff.stretched(self.call_timeout);
        Some(self.connection.silence.limit(oldest.at, call_timeout))
    }

    fn received(&mut self, now: Moment, packet: &[u8]) -> io::Result<Option<LinkEvent>> {
        self.connection.silence.heard(now);
        if now.since(self.established) >= LASTING {
            self.connection.backoff.worked();
        }
        match read(packet).map_err(io::Error::other)? {
            Packet::Message(message) => Ok(Some(LinkEvent::Message(message))),
            Packet::Answer(answer) => self.answered(&answer).map(Some),
        }
    }

    fn answered(&mut self, answer: &Answer<'_>) -> io::Result<LinkEvent> {
        self.seen = self.seen.max(answer.zxid);
        self.is_of_use = true;
        let known = self
            .in_flight
            .iter()
            .position(|it| it.number == answer.number);
        // A ping may be answered before earlier requests.
        let known = known.and_then(|at| Some((at, self.in_flight.get(at)?.expected)));
        let (at, expected) =
            known.ok_or_else(|| io::Error::other("an answer belongs to another request"))?;
        // One that cannot be read is none: the request is still in flight when the connection ends.
        let reply = answer.reply(expected).map_err(io::Error::other)?;
        let asked = self.in_flight.remove(at);
        let asked = asked.expect("it is there: it was found just now");
        Ok(LinkEvent::Reply(asked.to, reply))
    }
}

/// Closes the session, as far as that needs no waiting; it ends by itself, if later.
fn say_good_bye(wire: &mut Wire, packet: &[u8]) {
    wire.send(packet);
    let _ = wire.poll(&mut Context::from_waker(std::task::Waker::noop()));
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("up", &self.is_up())
            .field("in_flight", &self.in_flight.len())
            .finish_non_exhaustive()
    }
}

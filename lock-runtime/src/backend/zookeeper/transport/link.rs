//! The connection that is up, or the attempts to open one to each server in turn.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::connect::{Dialer, Opened};
use super::wire::Wire;
use crate::backend::zookeeper::call::{Call, To};
use crate::backend::zookeeper::protocol::connect::Identity;
use crate::backend::zookeeper::protocol::op::Op;
use crate::backend::zookeeper::protocol::reply::{
    Answer, Expected, Message, Packet, Refusal, Reply, read,
};
use crate::base::clock::Moment;
use crate::telemetry::events;
use crate::types::error::Cause;
use crate::types::health::LastError;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A last chance for an answer that has arrived but has not been read: the whole process
/// may have been stopped.
const GRACE: Duration = Duration::from_millis(20);

type Opening = Pin<Box<dyn Future<Output = Result<Opened, Cause>> + Send>>;

/// A connection, and everything that goes over it.
pub(crate) struct Link {
    dialer: Dialer,
    state: State,
    /// The server that is asked.
    host: usize,
    /// How many attempts have failed in a row, also those to use a connection.
    failures: usize,
    /// Whether the server has answered a request over this connection.
    is_of_use: bool,
    /// The last change that a server has told of.
    seen: i64,
    number: i32,
    in_flight: VecDeque<InFlight>,
    last_answer: Moment,
    grace: Option<Moment>,
    patience: Duration,
    last_error: Option<LastError>,
}

enum State {
    Down { until: Moment },
    Connecting(Opening),
    Up(Wire),
}

/// A request whose answer has not come in.
struct InFlight {
    number: i32,
    at: Moment,
    expected: Expected,
    to: To,
}

/// What has happened.
pub(crate) enum News {
    /// A server has answered to the request for a session.
    Opened(Opened),
    /// An attempt has failed.
    Failed(Cause),
    /// The connection has ended, and these answers will not come.
    Broken(Cause, Vec<To>),
    Reply(To, Result<Reply, Refusal>),
    Message(Message),
}

impl Link {
    pub(crate) fn new(dialer: Dialer, now: Moment) -> Self {
        Self {
            dialer,
            state: State::Down { until: now },
            host: 0,
            failures: 0,
            is_of_use: false,
            seen: 0,
            number: 0,
            in_flight: VecDeque::new(),
            last_answer: now,
            grace: None,
            patience: Duration::MAX,
            last_error: None,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(self.state, State::Up(_))
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
        self.last_error.as_ref()
    }

    /// Connects if there is no connection, asking for `session` to go on; writes what was
    /// sent, and reads what has come in. To be called until there are no news.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        now: Moment,
        session: Option<&Identity>,
    ) -> Option<News> {
        if let State::Down { until } = self.state
            && until <= now
        {
            self.dial(session);
        }
        if let State::Connecting(opening) = &mut self.state {
            return match opening.as_mut().poll(cx) {
                Poll::Ready(Ok(opened)) => Some(News::Opened(opened)),
                Poll::Ready(Err(cause)) => Some(self.dial_failed(now, cause)),
                Poll::Pending => None,
            };
        }
        let State::Up(wire) = &mut self.state else {
            return None;
        };
        // What came in before the connection ended is an answer still.
        let polled = wire.poll(cx);
        let news = match wire.packet() {
            Ok(Some(packet)) => self.received(now, &packet),
            Ok(None) => polled.map(|()| None),
            Err(error) => Err(error),
        };
        match news {
            Ok(Some(news)) => Some(news),
            Ok(None) if self.is_silent(now) => {
                let silence = io::Error::other("the server does not answer");
                Some(self.broken(now, Arc::new(silence)))
            }
            Ok(None) => None,
            Err(error) => Some(self.broken(now, Arc::new(error))),
        }
    }

    /// The connection belongs to a session. The server may leave requests unanswered for
    /// `patience` from now on.
    pub(crate) fn established(&mut self, now: Moment, opened: Opened, patience: Duration) {
        self.patience = patience;
        events::connected(0);
        self.state = State::Up(opened.wire);
        self.is_of_use = false;
        self.last_answer = now;
        self.grace = None;
    }

    /// Sends requests with the next poll; `false` if there were none.
    pub(crate) fn send(&mut self, now: Moment, calls: Vec<Call>) -> bool {
        let State::Up(wire) = &mut self.state else {
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

    /// Ends the connection, and tries another server: at once, if this one was of use.
    pub(crate) fn broken(&mut self, now: Moment, cause: Cause) -> News {
        events::disconnected(0, &cause);
        self.next_host(now, self.is_of_use, &cause);
        let unanswered = self.in_flight.drain(..).map(|it| it.to).collect();
        News::Broken(cause, unanswered)
    }

    /// The session is not to go on: the next attempt asks for another one.
    pub(crate) fn reset(&mut self, now: Moment) {
        self.state = State::Down { until: now };
        // The servers may have been restored to what was before.
        self.seen = 0;
        self.patience = Duration::MAX;
    }

    /// Says good-bye as far as that needs no waiting.
    pub(crate) fn close(&mut self) {
        if let State::Up(wire) = &mut self.state {
            let (_, packet) = Op::Close.encode(self.number, self.dialer.access());
            wire.send(&packet);
            // The session ends by itself, if later.
            let _ = wire.poll(&mut Context::from_waker(std::task::Waker::noop()));
        }
    }

    /// When something is due that no event announces.
    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        match self.state {
            State::Down { until } => Some(until),
            State::Connecting(_) => None,
            State::Up(_) => self.silent_at(),
        }
    }

    /// When the connection counts as broken if nothing arrives until then. A server that
    /// still answers earlier requests is slow, not silent.
    fn silent_at(&self) -> Option<Moment> {
        let oldest = self.in_flight.front()?;
        let heard = oldest.at.max(self.last_answer);
        Some(self.grace.unwrap_or(heard.after(self.patience())))
    }

    fn is_silent(&mut self, now: Moment) -> bool {
        let due = self.silent_at().is_some_and(|at| at <= now);
        let first = self.grace.is_none();
        if due && first {
            self.grace = Some(now.after(GRACE));
        }
        due && !first
    }

    /// How often all servers have failed in turn.
    fn rounds(&self) -> usize {
        self.failures / self.dialer.hosts()
    }

    /// Another server may be faster; if none is, they get more time.
    fn patience(&self) -> Duration {
        self.patience.saturating_mul(1 << self.rounds().min(8))
    }

    fn dial(&mut self, session: Option<&Identity>) {
        let dialer = self.dialer.clone().more_patient(self.rounds());
        let (host, session) = (self.host, session.cloned());
        let (seen, patience) = (self.seen, self.patience());
        self.state = State::Connecting(Box::pin(dialer.open(host, session, seen, patience)));
    }

    fn dial_failed(&mut self, now: Moment, cause: Cause) -> News {
        self.next_host(now, false, &cause);
        News::Failed(cause)
    }

    /// Once each server has refused, all get some time.
    fn next_host(&mut self, now: Moment, was_of_use: bool, cause: &Cause) {
        self.last_error = Some(LastError::now(cause));
        self.host += 1;
        self.failures = if was_of_use { 0 } else { self.failures + 1 };
        let rounds = self.rounds();
        let pause = match u32::try_from(rounds) {
            Ok(0) => Duration::ZERO,
            Ok(rounds) => FIRST_PAUSE.saturating_mul(1 << rounds.min(5)),
            Err(_) => LONGEST_PAUSE,
        };
        let pause = pause.min(LONGEST_PAUSE).mul_f64(0.5 + fastrand::f64());
        self.state = State::Down {
            until: now.after(pause),
        };
    }

    fn received(&mut self, now: Moment, packet: &[u8]) -> io::Result<Option<News>> {
        self.last_answer = now;
        self.grace = None;
        match read(packet).map_err(io::Error::other)? {
            Packet::Message(message) => Ok(Some(News::Message(message))),
            Packet::Answer(answer) => self.answered(&answer).map(Some),
        }
    }

    fn answered(&mut self, answer: &Answer<'_>) -> io::Result<News> {
        self.seen = self.seen.max(answer.zxid);
        self.is_of_use = true;
        let known = self
            .in_flight
            .iter()
            .position(|it| it.number == answer.number);
        // A ping may be answered before what was asked earlier.
        let asked = known.and_then(|at| self.in_flight.remove(at));
        let asked =
            asked.ok_or_else(|| io::Error::other("an answer belongs to another request"))?;
        let reply = answer.reply(asked.expected).map_err(io::Error::other)?;
        Ok(News::Reply(asked.to, reply))
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("up", &self.is_up())
            .field("host", &self.host)
            .field("in_flight", &self.in_flight.len())
            .finish_non_exhaustive()
    }
}

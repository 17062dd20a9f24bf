//! An open connection: sends calls, and tells of their answers in the same order.
//!
//! Behind a pooler it sends one call at a time, and each answer of a function has to have the mark of its call.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use super::dialer::Opened;
use super::server::Server;
use super::wire::Wire;
use crate::backend::postgres::protocol::answer::{Answer, Gathering, strange};
use crate::backend::postgres::protocol::call::{Call, Known};
use crate::backend::postgres::protocol::error::{Meaning, ServerError};
use crate::backend::postgres::protocol::mark::Mark;
use crate::backend::postgres::protocol::notification::Notification;
use crate::backend::transport::silence::Silence;
use crate::base::clock::Moment;
use crate::types::error::Cause;

pub(super) struct Open<T> {
    wire: Wire,
    pub(super) server: Server,
    /// The statements that the server surely knows.
    prepared: HashSet<&'static str>,
    in_flight: VecDeque<Flight<T>>,
    /// The calls behind a pooler that wait for the answer in flight.
    unsent: VecDeque<(Call, T)>,
    /// Of the first call in flight.
    gathering: Gathering,
    /// Why the connection is dropped with the next poll.
    useless: Option<Cause>,
}

/// Calls that were written together and have not all been answered.
struct Flight<T> {
    at: Moment,
    /// The shortest of their time limits.
    timeout: Duration,
    calls: VecDeque<InFlight<T>>,
}

struct InFlight<T> {
    to: T,
    /// The name under which its statement is prepared.
    name: Option<&'static str>,
    mark: Option<Mark>,
}

/// A message of the server, as the link needs it.
pub(super) enum Incoming<T> {
    Answer(T, Answer),
    Notification(Notification),
    /// Nothing for the caller.
    Nothing,
}

impl<T> Open<T> {
    pub(super) fn new(opened: Opened) -> Self {
        Self {
            wire: opened.wire,
            server: opened.server,
            prepared: HashSet::new(),
            in_flight: VecDeque::new(),
            unsent: VecDeque::new(),
            gathering: Gathering::default(),
            useless: None,
        }
    }

    pub(super) fn awaits_answer(&self) -> bool {
        !self.in_flight.is_empty() || !self.unsent.is_empty()
    }

    /// Until when an answer must come in.
    pub(super) fn answer_by(&self, silence: &Silence) -> Option<Moment> {
        // Answers come in order: one that is late holds up all that follow.
        let due = |it: &Flight<T>| silence.limit(it.at, it.timeout);
        self.in_flight.iter().map(due).min()
    }

    /// Sends calls with the next poll; `false` if there are none.
    pub(super) fn send(&mut self, now: Moment, calls: impl IntoIterator<Item = (Call, T)>) -> bool {
        if self.server.is_pooled {
            let known = self.unsent.len();
            self.unsent.extend(calls);
            return self.unsent.len() > known;
        }
        self.write(now, calls)
    }

    fn write(&mut self, now: Moment, calls: impl IntoIterator<Item = (Call, T)>) -> bool {
        let mut flight = Flight {
            at: now,
            timeout: Duration::MAX,
            calls: VecDeque::new(),
        };
        for (call, to) in calls {
            let is_pooled = self.server.is_pooled;
            let is_function = call.statement.name.is_some();
            let mark = (is_pooled && is_function).then(Mark::new);
            let call = match mark {
                Some(mark) => call.marked(mark),
                None => call,
            };
            let name = call.statement.name.filter(|_| !is_pooled);
            let known = match name {
                None => Known::Never,
                Some(name) if self.prepared.contains(name) => Known::Prepared,
                Some(_) => Known::Unsure,
            };
            call.write(known, self.wire.out());
            flight.timeout = flight.timeout.min(call.timeout);
            flight.calls.push_back(InFlight { to, name, mark });
        }
        let any = !flight.calls.is_empty();
        if any {
            self.in_flight.push_back(flight);
        }
        any
    }

    /// Writes what was sent and reads what has come in.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, now: Moment) {
        if self.in_flight.is_empty()
            && let Some(next) = self.unsent.pop_front()
        {
            self.write(now, [next]);
        }
        self.wire.poll(cx);
    }

    /// The next message, if one has come in; an error if the connection cannot be used any more.
    pub(super) fn incoming(&mut self) -> Result<Option<Incoming<T>>, Cause> {
        if let Some(cause) = self.useless.take() {
            return Err(cause);
        }
        let message = self.wire.message().map_err(broken)?;
        message.map(|it| self.read(&it)).transpose()
    }

    fn read(&mut self, message: &Message) -> Result<Incoming<T>, Cause> {
        match message {
            Message::ParameterStatus(_) => return Ok(Incoming::Nothing),
            Message::NoticeResponse(_) if self.in_flight.is_empty() => {
                return Ok(Incoming::Nothing);
            }
            Message::NotificationResponse(body) => {
                let notification = Notification::read(body).map_err(broken)?;
                return Ok(Incoming::Notification(notification));
            }
            _ => {}
        }
        let answer = self.gathering.take(message).map_err(broken)?;
        if let Some(error) = self.gathering.fatal() {
            return Err(Arc::new(error));
        }
        match answer {
            None => Ok(Incoming::Nothing),
            Some(answer) => self.answered(answer),
        }
    }

    fn answered(&mut self, answer: Answer) -> Result<Incoming<T>, Cause> {
        let first = self.in_flight.front_mut();
        let first = first.ok_or_else(|| broken(strange()))?;
        // A call that has no answer yet stays among those in flight.
        if let Some(InFlight {
            mark: Some(mark), ..
        }) = first.calls.front()
        {
            mark.demand(&answer).map_err(broken)?;
        }
        let call = first.calls.pop_front().ok_or_else(|| broken(strange()))?;
        if first.calls.is_empty() {
            self.in_flight.pop_front();
        }
        if answer.was_parsed {
            self.prepared.extend(call.name);
        }
        if let Err(error) = &answer.result {
            self.refused(error, call.name);
        }
        Ok(Incoming::Answer(call.to, answer))
    }

    fn refused(&mut self, error: &ServerError, name: Option<&'static str>) {
        if error.meaning() == Meaning::NotRun
            && let Some(name) = name
        {
            self.prepared.remove(name);
        }
        if error.is_of_another_server() {
            self.useless = Some(Arc::new(error.clone()));
        }
    }

    /// The calls that have not been answered.
    pub(super) fn unanswered(&mut self) -> Vec<T> {
        let calls = self.in_flight.drain(..).flat_map(|it| it.calls);
        let unsent = self.unsent.drain(..).map(|(_, to)| to);
        calls.map(|it| it.to).chain(unsent).collect()
    }

    /// Says good-bye as far as that needs no waiting.
    pub(super) fn close(&mut self) {
        frontend::terminate(self.wire.out());
        self.wire.poll(&mut Context::from_waker(Waker::noop()));
    }
}

fn broken(error: io::Error) -> Cause {
    Arc::new(error)
}

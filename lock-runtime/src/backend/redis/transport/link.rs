//! One connection of the pool: sends the calls of its queue as pipelines, and connects
//! again when it breaks.

mod others;

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use redis::{RedisResult, Value};

use super::connect::{Caller, Dialer, Identity, Opened, PushEvent, closed};
use super::desk::Desk;
use super::login::Login;
use super::replicas::Replicas;
use super::wire::{Answers, Wire};
use crate::backend::redis::protocol::batch;
use crate::backend::redis::protocol::call::{KeyNames, Sent};
use crate::backend::redis::protocol::message::Message;
use crate::backend::redis::protocol::reply::{ServerSaid, Trouble};
use crate::backend::redis::protocol::scripts::Script;
use crate::backend::redis::queue::Queue;
use crate::backend::redis::redlock::clocks::ahead;
use crate::backend::redis::sentinel::Master;
use crate::base::clock::Moment;
use crate::vocabulary::error::Cause;
use crate::vocabulary::events;
use crate::vocabulary::health::{Health, LastError};
use crate::vocabulary::query::Found;

/// How many pipelines in flight make it worth while to wait for more calls.
const BUSY: usize = 1;
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A connection, or the attempts to open one, and everything that goes over it.
pub(crate) struct Link<D = Queue> {
    pub(crate) queue: D,
    number: usize,
    names: Arc<KeyNames>,
    dialer: Dialer,
    state: State,
    /// How many connections there have been. Pushes of earlier ones are ignored.
    generation: u64,
    /// Whether the last one has ended already.
    ended: bool,
    login: Login,
    /// Whether there has been one.
    proven: bool,
    /// The identity of the last one.
    identity: Option<Identity>,
    /// By how many µs the server's clock was ahead of ours when it opened.
    clock_ahead: Option<i64>,
    /// The server of this one, or of the last one, if sentinels have named it.
    master: Option<Master>,
    /// In the order of sending, which is that of the answers.
    in_flight: VecDeque<InFlight>,
    last_answer: Moment,
    /// A last chance for an answer that has arrived but has not been read: the whole
    /// process may have been stopped.
    grace: Option<Moment>,
    pause: Duration,
    /// Scripts that the server has forgotten.
    forgotten: Vec<&'static Script>,
    last_error: Option<LastError>,
    /// Whether the next calls are sent one by one, to find the one that is refused.
    apart: bool,
}

enum State {
    Down {
        until: Moment,
    },
    Connecting(Boxed<Result<Opened, Trouble>>),
    Up {
        wire: Wire,
        /// Who confirms what has been said on the wire, if somebody has to.
        replicas: Option<Box<Replicas>>,
    },
}

/// A pipeline whose answers have not all come in.
struct InFlight {
    sent: Vec<Sent>,
    apart: bool,
    at: Moment,
    timeout: Duration,
    answers: Answers,
}

/// The calls of a pipeline, and their answers.
pub(crate) struct Answered {
    sent: Vec<Sent>,
    apart: bool,
    result: RedisResult<Vec<Value>>,
}

impl<D: Desk> Link<D> {
    pub(crate) fn new(
        number: usize,
        queue: D,
        names: KeyNames,
        dialer: Dialer,
        now: Moment,
    ) -> Self {
        Self {
            queue,
            login: Login::new(None, now, None),
            number,
            names: Arc::new(names),
            dialer,
            state: State::Down { until: now },
            generation: 0,
            ended: false,
            proven: false,
            identity: None,
            clock_ahead: None,
            master: None,
            in_flight: VecDeque::new(),
            last_answer: now,
            grace: None,
            pause: FIRST_PAUSE,
            forgotten: Vec::new(),
            last_error: None,
            apart: false,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(self.state, State::Up { .. })
    }

    pub(crate) fn clock_ahead(&self) -> Option<i64> {
        self.clock_ahead
    }

    /// Whether it is open and few pipelines are in flight.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_up() && self.in_flight.len() < BUSY
    }

    /// Adds to the answer of a probe what the queue does not know.
    pub(crate) fn complete(&self, result: &mut Result<Found, Cause>) {
        let known = self.last_error.clone();
        match result {
            Ok(Found::Health(health)) => health.last_error = known,
            Ok(_) => {}
            Err(cause) => {
                let current = known.filter(|_| !self.is_up());
                let error = current.unwrap_or_else(|| LastError::now(cause));
                *result = Ok(Found::Health(Health::unreachable(error)));
            }
        }
    }

    /// Writes what was sent and reads what has come in.
    pub(crate) fn poll_io(&mut self, cx: &mut Context<'_>) {
        if let State::Up { wire, replicas } = &mut self.state {
            wire.poll(cx);
            if let Some(replicas) = replicas {
                replicas.poll_io(cx);
            }
        }
    }

    /// The next answers, if they have arrived.
    pub(crate) fn next_answer(&mut self) -> Option<Answered> {
        let result = Wire::answered(&mut self.in_flight.front_mut()?.answers)?;
        let pipeline = self.in_flight.pop_front()?;
        Some(Answered {
            sent: pipeline.sent,
            apart: pipeline.apart,
            result,
        })
    }

    /// Gives each call of a pipeline its reply.
    pub(crate) fn settle(&mut self, now: Moment, answered: Answered) {
        self.last_answer = now;
        self.grace = None;
        let Answered {
            sent,
            apart,
            result,
        } = answered;
        let values = match result {
            Ok(values) => values,
            Err(error) => {
                let cause: Cause = Arc::new(error);
                self.unknown(now, sent, &cause);
                return self.broken(now, cause);
            }
        };
        let mut sent = sent.into_iter();
        let mut replaced = false;
        let mut values = values.into_iter();
        while let Some(value) = values.next() {
            let calls = batch::next(sent.as_slice(), apart);
            let value = match calls {
                // That was the answer to `ASKING`.
                [one] if one.asking => values.next().unwrap_or(value),
                _ => value,
            };
            self.apart |= batch::is_refused(calls, &value);
            let Some(replies) = batch::decode(calls, value) else {
                break;
            };
            if let Some(Err(Trouble::NotRun)) = replies.first() {
                self.forgotten.extend(batch::script(calls));
            }
            for (reply, call) in replies.into_iter().zip(sent.by_ref()) {
                replaced |= matches!(&reply, Err(trouble) if trouble.is_replica());
                self.queue.replied(now, call, reply);
            }
        }
        if sent.len() > 0 {
            self.shifted(now, sent.collect());
        } else if replaced && self.dialer.may_change() {
            let cause = ServerSaid("the server has become a replica".into());
            self.broken(now, Arc::new(cause));
        }
    }

    pub(crate) fn pushed(&mut self, now: Moment, generation: u64, event: &PushEvent) {
        if generation != self.generation {
            return;
        }
        match event {
            PushEvent::Message(message) => {
                if let Some(message) = Message::parse(message) {
                    self.queue.heard(now, message);
                }
            }
            PushEvent::Disconnected if self.is_up() => self.broken(now, Arc::new(closed())),
            // It ended before we knew that it was open.
            PushEvent::Disconnected => self.ended = true,
        }
    }

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
                Ok(opened) => self.opened(now, opened),
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

    /// Takes the calls of the queue, which the next [`poll_io`](Self::poll_io) writes;
    /// `false` if there were none.
    pub(crate) fn flush(&mut self, now: Moment) -> bool {
        let State::Up { wire, .. } = &self.state else {
            return false;
        };
        let login = self.login.take_sent();
        // The answer that is due brings us here again.
        if !self.in_flight.is_empty() && self.queue.can_wait() {
            return login;
        }
        let sent = self.queue.calls();
        let Some(timeout) = sent.iter().map(|sent| sent.call.timeout()).min() else {
            return login;
        };
        let apart = std::mem::take(&mut self.apart) || self.names.is_declared();
        let (pipeline, aside) = batch::pipeline(&sent, &self.names, &self.forgotten, apart);
        self.forgotten.clear();
        let answers = wire.send(pipeline, aside);
        self.in_flight.push_back(InFlight {
            sent,
            apart,
            at: now,
            timeout,
            answers,
        });
        true
    }

    /// When something is due that no event announces.
    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        let dial = match self.state {
            State::Down { until } => Some(until),
            _ => None,
        };
        let login = self.login.next_wakeup().filter(|_| self.is_up());
        let all = [dial, login, self.silent_at(), self.queue.next_wakeup()];
        all.into_iter().flatten().min()
    }

    /// When the connection counts as broken if nothing arrives until then. A server
    /// that still answers earlier calls is slow, not silent.
    fn silent_at(&self) -> Option<Moment> {
        let server = self.in_flight.front().map(|oldest| {
            let heard = oldest.at.max(self.last_answer);
            heard.after(oldest.timeout)
        });
        let replicas = match &self.state {
            State::Up { replicas, .. } => replicas.as_ref().and_then(|it| it.silent_at()),
            _ => None,
        };
        let silent = server.into_iter().chain(replicas).min()?;
        Some(self.grace.unwrap_or(silent))
    }

    fn grant_grace(&mut self, now: Moment) -> bool {
        let first = self.grace.is_none();
        self.grace = Some(now.after(GRACE));
        first
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
            wire: Wire::new(opened.connection, opened.io),
            replicas: opened
                .replicas
                .map(|(connection, io)| Box::new(Replicas::new(Wire::new(connection, io), needed))),
        };
        self.pause = FIRST_PAUSE;
        self.last_answer = now;
        self.grace = None;
        self.queue.quarantined(now, opened.quarantine);
        self.queue.connected(now);
    }

    fn dial_failed(&mut self, now: Moment, trouble: Trouble) -> Trouble {
        self.state = State::Down {
            until: now.after(self.pause.mul_f64(0.5 + fastrand::f64())),
        };
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.last_error = Some(LastError::now(&trouble.cause()));
        self.queue.disconnected(trouble.clone());
        trouble
    }

    /// The replies no longer match the calls.
    fn shifted(&mut self, now: Moment, sent: Vec<Sent>) {
        let said = ServerSaid("an answer belongs to another call".into());
        let cause: Cause = Arc::new(said);
        self.unknown(now, sent, &cause);
        self.broken(now, cause);
    }

    /// Drops the connection; a new one is dialled at once.
    pub(crate) fn broken(&mut self, now: Moment, cause: Cause) {
        if !self.is_up() {
            return;
        }
        events::disconnected(self.number, &cause);
        self.last_error = Some(LastError::now(&cause));
        self.state = State::Down { until: now };
        for pipeline in std::mem::take(&mut self.in_flight) {
            self.unknown(now, pipeline.sent, &cause);
        }
        // Calls that were not sent yet are decided anew.
        let unsent = self.queue.calls();
        self.unknown(now, unsent, &cause);
        self.queue.disconnected(Trouble::Unknown(cause));
    }

    fn unknown(&mut self, now: Moment, sent: Vec<Sent>, cause: &Cause) {
        for call in sent {
            let trouble = Trouble::Unknown(Arc::clone(cause));
            self.queue.replied(now, call, Err(trouble));
        }
    }
}

impl<D: Desk> fmt::Debug for Link<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("number", &self.number)
            .field("generation", &self.generation)
            .field("up", &self.is_up())
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

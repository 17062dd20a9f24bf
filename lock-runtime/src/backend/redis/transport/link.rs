//! One connection of the pool: sends the calls of its queue as pipelines, and connects
//! again when it breaks.

mod answers;
mod dialling;
mod doubts;
mod others;

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use self::doubts::{Doubts, Question};
use super::connect::{Dialer, Opened};
use super::desk::Desk;
use super::login::Login;
use super::prepare::Identity;
use super::quarantine::Standing;
use super::replicas::Replicas;
use super::wire::{Answers, Wire};
use crate::backend::redis::protocol::batch;
use crate::backend::redis::protocol::call::Sent;
use crate::backend::redis::protocol::names::{KeyNames, Together};
use crate::backend::redis::protocol::reply::Trouble;
use crate::backend::redis::protocol::scripts::Script;
use crate::backend::redis::queue::Queue;
use crate::backend::redis::sentinel::Master;
use crate::base::clock::Moment;
use crate::types::authority::Host;
use crate::types::error::Cause;
use crate::types::health::LastError;

/// How many pipelines in flight make it worth while to wait for more calls.
const BUSY: usize = 1;
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_millis(20);

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
    /// The server that sentinels named last.
    named: Option<Host>,
    /// When this one, or the last one, was opened.
    opened: Moment,
    /// In the order of sending, which is that of the answers.
    in_flight: VecDeque<InFlight>,
    last_answer: Moment,
    /// A last chance for an answer that has arrived but has not been read: the whole
    /// process may have been stopped.
    grace: Option<Moment>,
    /// How long the next attempt waits at the least. Work that succeeds makes it short again:
    /// a server may accept connections, and refuse all that is asked on them.
    pause: Duration,
    /// Scripts that the server has forgotten.
    forgotten: Vec<&'static Script>,
    last_error: Option<LastError>,
    /// Whether the next calls are sent one by one, to find the one that is refused.
    apart: bool,
    role: Question,
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
        /// What the server is, where it has to be the same still when it grants something.
        standing: Option<Standing>,
    },
}

impl State {
    fn standing(&self) -> Option<&Standing> {
        match self {
            Self::Up { standing, .. } => standing.as_ref(),
            _ => None,
        }
    }
}

/// A pipeline whose answers have not all come in.
struct InFlight {
    sent: Vec<Sent>,
    together: Together,
    doubts: Doubts,
    at: Moment,
    timeout: Duration,
    answers: Answers,
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
            role: Question::of_role(&dialer),
            dialer,
            state: State::Down { until: now },
            generation: 0,
            ended: false,
            proven: false,
            identity: None,
            clock_ahead: None,
            master: None,
            named: None,
            opened: now,
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

    /// Whether an answer is due.
    pub(crate) fn awaits_answer(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// What went wrong last.
    pub(crate) fn last_error(&self) -> Option<LastError> {
        self.last_error.clone()
    }

    /// Writes what was sent and reads what has come in.
    pub(crate) fn poll_io(&mut self, cx: &mut Context<'_>) {
        if let State::Up { wire, replicas, .. } = &mut self.state {
            wire.poll(cx);
            if let Some(replicas) = replicas {
                replicas.poll_io(cx);
            }
        }
    }

    /// Takes the calls of the queue, which the next [`poll_io`](Self::poll_io) writes;
    /// `false` if there were none.
    pub(crate) fn flush(&mut self, now: Moment) -> bool {
        let State::Up { wire, standing, .. } = &self.state else {
            return false;
        };
        let login = self.login.take_sent();
        // The answer that is due brings us here again.
        if self.awaits_answer() && self.queue.can_wait() {
            return login;
        }
        let sent = self.queue.calls();
        let Some(timeout) = sent.iter().map(|sent| sent.call.timeout()).min() else {
            return login;
        };
        let together = if std::mem::take(&mut self.apart) {
            Together::None
        } else {
            self.names.together()
        };
        let (mut pipeline, aside) = batch::pipeline(&sent, &self.names, &self.forgotten, together);
        let doubts = Doubts::ask(&sent, standing.as_ref(), self.role, &mut pipeline);
        self.forgotten.clear();
        let answers = wire.send(pipeline, aside);
        self.in_flight.push_back(InFlight {
            sent,
            together,
            doubts,
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
        // Answers come in order: one that is late holds up all that follow.
        let due = |it: &InFlight| it.at.max(self.last_answer).after(it.timeout);
        let server = self.in_flight.iter().map(due).min();
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

//! One connection of the pool: sends the calls of its queue as pipelines, and connects
//! again when it breaks.

mod answers;
mod dialling;
mod doubts;
mod others;
mod room;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use self::doubts::{Doubts, Question};
use self::room::Room;
use super::call_source::CallSource;
use super::connect::{Dialer, Opened, PIPELINES};
use super::login::Login;
use super::prepare::Identity;
use super::quarantine::Standing;
use super::replicas::Replicas;
use super::wire::{Answers, Wire};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::protocol::batch;
use crate::backend::redis::protocol::call::Queue;
use crate::backend::redis::protocol::call::Sent;
use crate::backend::redis::protocol::names::{KeyNames, Together};
use crate::backend::redis::protocol::scripts::Script;
use crate::backend::redis::sentinel::Master;
use crate::backend::transport::connection::Connection;
use crate::base::clock::Moment;
use crate::types::authority::Host;
use crate::types::error::Cause;
use crate::types::health::LastError;

/// How many pipelines in flight make it worth while to wait for more calls.
const BUSY: usize = 1;

/// A connection, or the attempts to open one, and everything that goes over it.
pub(crate) struct Link<D = Queue> {
    pub(crate) queue: D,
    connection: Connection<Result<Opened, Trouble>, Up>,
    names: Arc<KeyNames>,
    dialer: Dialer,
    /// How many connections there have been. Pushes of earlier ones are ignored.
    generation: u64,
    /// Whether the last one has ended already.
    ended: bool,
    login: Login,
    /// Whether there has been one.
    proven: bool,
    /// The identity of the last one.
    identity: Option<Identity>,
    /// The time of the server's clock, since 1970, and the moment at which it was read.
    clock: Option<(Duration, Moment)>,
    /// The server of this one, or of the last one, if sentinels have named it.
    master: Option<Master>,
    /// The server that sentinels named last.
    named: Option<Host>,
    /// In the order of sending, which is that of the answers.
    in_flight: VecDeque<InFlight>,
    room: Room,
    /// Scripts that the server has forgotten.
    forgotten: Vec<&'static Script>,
    /// Whether the next calls are sent one by one, to find the one that is refused.
    apart: bool,
    role: Question,
}

/// The parts of an open connection.
struct Up {
    wire: Wire,
    /// The replicas that confirm answers, if any have to.
    replicas: Option<Replicas>,
    /// The role of the server, if it must be unchanged when the server grants something.
    standing: Option<Standing>,
}

impl Up {
    /// All connections.
    fn wires(&self) -> impl Iterator<Item = &Wire> {
        let replicas = self.replicas.as_ref().map(Replicas::wire);
        [&self.wire].into_iter().chain(replicas)
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

impl<D: CallSource> Link<D> {
    pub(crate) fn new(
        number: usize,
        queue: D,
        names: KeyNames,
        dialer: Dialer,
        now: Moment,
    ) -> Self {
        Self {
            queue,
            connection: Connection::new(number, 1, now),
            login: Login::new(dialer.logins.clone(), now, None),
            names: Arc::new(names),
            role: Question::of_role(&dialer),
            dialer,
            generation: 0,
            ended: false,
            proven: false,
            identity: None,
            clock: None,
            master: None,
            named: None,
            in_flight: VecDeque::new(),
            room: Room::default(),
            forgotten: Vec::new(),
            apart: false,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.connection.is_up()
    }

    /// The time of the server's clock, since 1970, and the moment at which it was read.
    pub(crate) fn clock(&self) -> Option<(Duration, Moment)> {
        self.clock
    }

    /// Whether it is open and few pipelines are in flight.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_up() && self.in_flight.len() < BUSY
    }

    /// Whether an answer is due.
    pub(crate) fn awaits_answer(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// The last error.
    pub(crate) fn last_error(&self) -> Option<LastError> {
        self.connection.last_error.clone()
    }

    /// Writes what was sent and reads what has come in.
    pub(crate) fn poll_io(&mut self, cx: &mut Context<'_>) {
        if let Some(up) = self.connection.up_mut() {
            up.wire.poll(cx);
            if let Some(replicas) = &mut up.replicas {
                replicas.poll_io(cx);
            }
        }
    }

    /// Takes the calls of the queue, which the next [`poll_io`](Self::poll_io) writes;
    /// `false` if there were none.
    pub(crate) fn flush(&mut self, now: Moment) -> bool {
        let Some(up) = self.connection.up() else {
            return false;
        };
        let login = self.login.take_sent();
        // The answer that is due brings us here again. A pipeline for which the library's buffer has no room would be
        // written late, perhaps behind the next one.
        let is_full = self.in_flight.len() >= PIPELINES / 2;
        let may_wait = self.room.is_limited() || self.queue.can_wait();
        if is_full || self.awaits_answer() && may_wait {
            return login;
        }
        let sent = self.room.fill(self.queue.calls());
        let Some(timeout) = sent.iter().map(|sent| sent.call.timeout()).min() else {
            return login;
        };
        let together = if std::mem::take(&mut self.apart) {
            Together::None
        } else {
            self.names.together()
        };
        let (mut pipeline, aside) = batch::pipeline(&sent, &self.names, &self.forgotten, together);
        let doubts = Doubts::ask(&sent, up.standing.as_ref(), self.role, &mut pipeline);
        self.forgotten.clear();
        let answers = up.wire.send(pipeline, aside);
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
        let connection = self.connection.next_wakeup(self.answer_by());
        let login = self.login.next_wakeup().filter(|_| self.is_up());
        let all = [connection, login, self.queue.next_wakeup()];
        all.into_iter().flatten().min()
    }

    /// Until when an answer must come in.
    fn answer_by(&self) -> Option<Moment> {
        // Answers come in order: one that is late holds up all that follow.
        let due = |it: &InFlight| self.connection.silence.limit(it.at, it.timeout);
        let server = self.in_flight.iter().map(due).min();
        let replicas = self.connection.up().and_then(|up| up.replicas.as_ref());
        let replicas = replicas.and_then(Replicas::silent_at);
        server.into_iter().chain(replicas).min()
    }

    fn unknown(&mut self, now: Moment, sent: Vec<Sent>, cause: &Cause) {
        for call in sent {
            let trouble = Trouble::Unknown(Arc::clone(cause));
            self.queue.replied(now, call, Err(trouble));
        }
    }
}

impl<D: CallSource> fmt::Debug for Link<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("number", &self.connection.number)
            .field("generation", &self.generation)
            .field("up", &self.is_up())
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

//! One connection of the pool: sends what its queue wants sent, in one pipeline
//! at a time, and connects again when it breaks.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use redis::{RedisResult, Value};

use super::connect::{Dialer, Identity, Opened, PushEvent, closed};
use super::wire::{Answers, Wire};
use crate::backend::redis::protocol::batch;
use crate::backend::redis::protocol::call::{Names, Sent};
use crate::backend::redis::protocol::message::Message;
use crate::backend::redis::protocol::reply::{ServerSaid, Trouble};
use crate::backend::redis::protocol::scripts::Script;
use crate::backend::redis::queue::Queue;
use crate::base::clock::Moment;
use crate::vocabulary::error::Cause;
use crate::vocabulary::events;

/// How many batches on their way make it worth while to wait for more calls.
const BUSY: usize = 1;
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A connection, or the lack of one, and what goes over it.
pub(crate) struct Link {
    pub(crate) queue: Queue,
    number: usize,
    names: Arc<Names>,
    dialer: Dialer,
    state: State,
    /// How many connections there have been. Pushes of an earlier one are not
    /// listened to.
    generation: u64,
    /// Whether the last one has ended already.
    ended: bool,
    /// Which one the last was.
    identity: Option<Identity>,
    /// In the order in which they were sent, which is that of their answers.
    batches: VecDeque<Batch>,
    last_answer: Moment,
    /// A last chance for an answer that is there but has not been read: the
    /// whole process may have been stopped.
    grace: Option<Moment>,
    pause: Duration,
    /// Those that the server does not remember.
    forgotten: Vec<&'static Script>,
    /// Whether the next calls go one by one, to see which of them is refused.
    apart: bool,
}

enum State {
    Down { until: Moment },
    Connecting(Boxed<RedisResult<Opened>>),
    Up(Wire),
}

struct Batch {
    sent: Vec<Sent>,
    apart: bool,
    at: Moment,
    timeout: Duration,
    answers: Answers,
}

/// What came of a batch.
pub(crate) struct Answered {
    sent: Vec<Sent>,
    apart: bool,
    result: RedisResult<Vec<Value>>,
}

impl Link {
    pub(crate) fn new(number: usize, names: Names, dialer: Dialer, now: Moment) -> Self {
        Self {
            queue: Queue::new(),
            number,
            names: Arc::new(names),
            dialer,
            state: State::Down { until: now },
            generation: 0,
            ended: false,
            identity: None,
            batches: VecDeque::new(),
            last_answer: now,
            grace: None,
            pause: FIRST_PAUSE,
            forgotten: Vec::new(),
            apart: false,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(self.state, State::Up(_))
    }

    /// Whether it is open and waits for few answers.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_up() && self.batches.len() < BUSY
    }

    /// Writes what was sent and reads what has come in.
    pub(crate) fn poll_io(&mut self, cx: &mut Context<'_>) {
        if let State::Up(wire) = &mut self.state {
            wire.poll(cx);
        }
    }

    /// The next answer to what was sent, if it has come in.
    pub(crate) fn next_answer(&mut self) -> Option<Answered> {
        let result = Wire::answered(&mut self.batches.front_mut()?.answers)?;
        let batch = self.batches.pop_front()?;
        Some(Answered {
            sent: batch.sent,
            apart: batch.apart,
            result,
        })
    }

    /// Gives each call of a batch its reply.
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
        for value in values {
            let calls = batch::next(sent.as_slice(), apart);
            self.apart |= batch::refused(calls, &value);
            let Some(replies) = batch::decode(calls, value) else {
                break;
            };
            if let Some(Err(Trouble::NotRun)) = replies.first() {
                self.forgotten.extend(batch::script(calls));
            }
            for (reply, call) in replies.into_iter().zip(sent.by_ref()) {
                self.queue.replied(now, call, reply);
            }
        }
        if sent.len() > 0 {
            self.shifted(now, sent.collect());
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
            // It ended before we had heard that it was open.
            PushEvent::Disconnected => self.ended = true,
        }
    }

    /// Connects where there is no connection, and drops one that has gone
    /// silent. Returns the error of an attempt that has failed.
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
                Ok(_) if self.ended => return Err(self.refused(now, closed())),
                Ok(opened) => self.opened(now, opened),
                Err(error) => return Err(self.refused(now, error)),
            }
        }
        Ok(())
    }

    /// Hands over what the queue has for the server, which the next
    /// [`poll_io`](Self::poll_io) writes; whether there was anything.
    pub(crate) fn flush(&mut self, now: Moment) -> bool {
        let State::Up(wire) = &self.state else {
            return false;
        };
        let sent = self.queue.calls();
        let Some(timeout) = sent.iter().map(|sent| sent.call.timeout()).min() else {
            return false;
        };
        let apart = std::mem::take(&mut self.apart);
        let (pipeline, aside) = batch::pipeline(&sent, &self.names, &self.forgotten, apart);
        self.forgotten.clear();
        let answers = wire.send(pipeline, aside);
        self.batches.push_back(Batch {
            sent,
            apart,
            at: now,
            timeout,
            answers,
        });
        true
    }

    /// When there will be something to do without an event.
    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        let dial = match self.state {
            State::Down { until } => Some(until),
            _ => None,
        };
        let all = [dial, self.silent_at(), self.queue.next_wakeup()];
        all.into_iter().flatten().min()
    }

    /// When the connection counts as broken if nothing comes in until then. A
    /// server that answers others before us is slow, not silent.
    fn silent_at(&self) -> Option<Moment> {
        let oldest = self.batches.front()?;
        let heard = oldest.at.max(self.last_answer);
        Some(self.grace.unwrap_or(heard.after(oldest.timeout)))
    }

    fn grant_grace(&mut self, now: Moment) -> bool {
        let first = self.grace.is_none();
        self.grace = Some(now.after(GRACE));
        first
    }

    fn dial(&mut self) {
        self.generation += 1;
        self.ended = false;
        let (number, generation) = (self.number, self.generation);
        let (dialer, names) = (self.dialer.clone(), Arc::clone(&self.names));
        let old = self.identity.clone();
        self.state = State::Connecting(Box::pin(async move {
            dialer.open(&names, number, generation, old).await
        }));
    }

    fn opened(&mut self, now: Moment, opened: Opened) {
        events::connected(self.number);
        self.identity.clone_from(&opened.identity);
        self.state = State::Up(Wire::new(opened));
        self.pause = FIRST_PAUSE;
        self.last_answer = now;
        self.grace = None;
        self.queue.connected(now);
    }

    fn refused(&mut self, now: Moment, error: redis::RedisError) -> Trouble {
        let trouble = Trouble::from_connecting(error, &self.names);
        self.state = State::Down {
            until: now.after(self.pause.mul_f64(0.5 + fastrand::f64())),
        };
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.queue.disconnected(trouble.clone());
        trouble
    }

    /// The replies do not belong to the calls any more.
    fn shifted(&mut self, now: Moment, sent: Vec<Sent>) {
        let said = ServerSaid("an answer belongs to another question".into());
        let cause: Cause = Arc::new(said);
        self.unknown(now, sent, &cause);
        self.broken(now, cause);
    }

    /// Drops the connection; a new one is dialled at once.
    fn broken(&mut self, now: Moment, cause: Cause) {
        if !self.is_up() {
            return;
        }
        events::disconnected(self.number, &cause);
        self.state = State::Down { until: now };
        for batch in std::mem::take(&mut self.batches) {
            self.unknown(now, batch.sent, &cause);
        }
        // What was not sent yet is decided anew.
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

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("number", &self.number)
            .field("generation", &self.generation)
            .field("up", &self.is_up())
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

//! Processes the arrivals on a link: answers to its pipelines, and pushes.

use std::sync::Arc;

use redis::{RedisResult, Value};

use super::Link;
use super::doubts::Doubts;
use crate::backend::queue::protocol::message::Message;
use crate::backend::queue::protocol::trouble::{ServerSaid, Trouble};
use crate::backend::redis::opening::closed;
use crate::backend::redis::protocol::batch;
use crate::backend::redis::protocol::call::Sent;
use crate::backend::redis::protocol::names::Together;
use crate::backend::redis::transport::call_source::CallSource;
use crate::backend::redis::transport::connect::PushEvent;
use crate::backend::redis::transport::wire::Wire;
use crate::base::clock::Moment;
use crate::types::error::Cause;

/// The calls of a pipeline, and their answers.
pub(crate) struct Answered {
    sent: Vec<Sent>,
    together: Together,
    doubts: Doubts,
    result: RedisResult<Vec<Value>>,
}

impl<D: CallSource> Link<D> {
    /// The next answers, if they have arrived.
    pub(crate) fn next_answer(&mut self) -> Option<Answered> {
        let result = Wire::answered(&mut self.in_flight.front_mut()?.answers)?;
        let pipeline = self.in_flight.pop_front()?;
        Some(Answered {
            sent: pipeline.sent,
            together: pipeline.together,
            doubts: pipeline.doubts,
            result,
        })
    }

    /// Gives each call of a pipeline its reply.
    pub(crate) fn settle(&mut self, now: Moment, answered: Answered) {
        self.connection.silence.heard(now);
        let Answered {
            sent,
            together,
            doubts,
            result,
        } = answered;
        let mut values = match result {
            Ok(values) => values,
            Err(error) => {
                let cause: Cause = Arc::new(error);
                self.unknown(now, sent, &cause);
                return self.ended(now, cause);
            }
        };
        self.room.answered(sent.len());
        let standing = self.connection.up().and_then(|up| up.standing.as_ref());
        if let Some(said) = doubts.settle(&mut values, standing, &mut self.role) {
            let cause: Cause = Arc::new(said);
            self.unknown(now, sent, &cause);
            return self.broken(now, cause);
        }
        let mut sent = sent.into_iter();
        let mut replaced = None;
        let mut values = values.into_iter();
        while let Some(value) = values.next() {
            let calls = batch::next(sent.as_slice(), together);
            let value = match calls {
                // That was the answer to `ASKING`.
                [one] if one.route.asking => values.next().unwrap_or(value),
                _ => value,
            };
            self.apart |= batch::is_refused(calls, &value);
            let Some(replies) = batch::decode(calls, value) else {
                break;
            };
            if let Some(Err(Trouble::NotRun)) = replies.first() {
                self.forgotten.extend(batch::script(calls, &self.names));
            }
            for (reply, call) in replies.into_iter().zip(sent.by_ref()) {
                if let Err(trouble) = &reply
                    && trouble.is_replica()
                {
                    replaced = Some(trouble.cause());
                }
                // No replica says so.
                if reply.as_ref().is_ok_and(|it| call.call.is_held_by(it)) {
                    self.connection.backoff.worked();
                }
                self.queue.replied(now, call, reply);
            }
        }
        if sent.len() > 0 {
            self.shifted(now, sent.collect());
        } else if let Some(cause) = replaced.filter(|_| self.dialer.may_change()) {
            self.broken(now, cause);
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
            PushEvent::Disconnected if self.is_up() => self.ended(now, Arc::new(closed())),
            // It ended before we knew that it was open.
            PushEvent::Disconnected => self.ended = true,
        }
    }

    /// The replies no longer match the calls.
    fn shifted(&mut self, now: Moment, sent: Vec<Sent>) {
        let said = ServerSaid("an answer belongs to another call".into());
        let cause: Cause = Arc::new(said);
        self.unknown(now, sent, &cause);
        self.broken(now, cause);
    }
}

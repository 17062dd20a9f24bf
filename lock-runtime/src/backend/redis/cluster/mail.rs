//! What a node's link has to send, and what came of it: the links of a lane share one
//! queue, so none of them owns it.

use std::collections::VecDeque;
use std::time::Duration;

use crate::backend::redis::protocol::call::Sent;
use crate::backend::redis::protocol::message::Message;
use crate::backend::redis::protocol::reply::{Reply, Trouble};
use crate::backend::redis::transport::desk::Desk;
use crate::base::clock::Moment;

#[derive(Debug, Default)]
pub(super) struct Mail {
    outbox: Vec<Sent>,
    inbox: VecDeque<Event>,
}

/// What a link reports, in the order in which it happened.
#[derive(Debug)]
pub(super) enum Event {
    Replied(Sent, Result<Reply, Trouble>),
    Heard(Message),
    Up,
    Down(Trouble),
}

impl Mail {
    pub(super) fn post(&mut self, sent: Sent) {
        self.outbox.push(sent);
    }

    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.inbox.pop_front()
    }
}

impl Desk for Mail {
    fn calls(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.outbox)
    }

    fn replied(&mut self, _now: Moment, sent: Sent, result: Result<Reply, Trouble>) {
        self.inbox.push_back(Event::Replied(sent, result));
    }

    fn heard(&mut self, _now: Moment, message: Message) {
        self.inbox.push_back(Event::Heard(message));
    }

    fn connected(&mut self, _now: Moment) {
        self.inbox.push_back(Event::Up);
    }

    fn disconnected(&mut self, trouble: Trouble) {
        self.inbox.push_back(Event::Down(trouble));
    }

    fn ask_replicas(&mut self) -> Option<Duration> {
        None
    }

    fn replicas_answered(&mut self, _now: Moment, _answer: &Result<(), Trouble>) {}

    fn next_wakeup(&self) -> Option<Moment> {
        None
    }
}

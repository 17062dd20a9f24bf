//! What a node's link has to send, and what came of it: the links of a lane share one
//! queue, so none of them owns it.

use std::collections::VecDeque;
use std::time::Duration;

use crate::backend::redis::protocol::call::Sent;
use crate::backend::redis::protocol::message::Message;
use crate::backend::redis::protocol::reply::{Reply, Trouble};
use crate::backend::redis::transport::desk::Desk;
use crate::base::clock::Moment;
use crate::vocabulary::key::LockKey;

#[derive(Debug, Default)]
pub(super) struct Mail {
    outbox: Vec<Sent>,
    inbox: VecDeque<Event>,
    /// Grants and renewals that the node's replicas have to confirm, where they have to.
    replicated: Option<Unconfirmed>,
}

/// What the node has said and its replicas have not confirmed yet.
#[derive(Debug, Default)]
struct Unconfirmed {
    /// Since they were last asked.
    said: Vec<(Sent, Reply)>,
    /// What they are being asked about.
    asked: Vec<(Sent, Reply)>,
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
    /// With `replicated`, grants and renewals count once replicas have them.
    pub(super) fn new(replicated: bool) -> Self {
        Self {
            replicated: replicated.then(Unconfirmed::default),
            ..Self::default()
        }
    }

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
        match (&mut self.replicated, result) {
            (Some(all), Ok(reply)) if sent.call.is_held_by(&reply) => all.said.push((sent, reply)),
            (_, result) => self.inbox.push_back(Event::Replied(sent, result)),
        }
    }

    fn heard(&mut self, _now: Moment, message: Message) {
        self.inbox.push_back(Event::Heard(message));
    }

    fn quarantined(&mut self, _now: Moment, _left: Option<Duration>) {}

    fn connected(&mut self, _now: Moment) {
        self.inbox.push_back(Event::Up);
    }

    fn disconnected(&mut self, trouble: Trouble) {
        let all = self.replicated.as_mut().map(std::mem::take);
        for (sent, _) in all
            .into_iter()
            .flat_map(|it| it.asked.into_iter().chain(it.said))
        {
            let nobody = Err(trouble.clone());
            self.inbox.push_back(Event::Replied(sent, nobody));
        }
        self.inbox.push_back(Event::Down(trouble));
    }

    fn ask_replicas(&mut self) -> Option<(Duration, LockKey)> {
        let all = self.replicated.as_mut()?;
        if !all.asked.is_empty() {
            return None;
        }
        all.asked = std::mem::take(&mut all.said);
        let about = all.asked.first()?.0.call.key()?.clone();
        let timeouts = all.asked.iter().map(|(sent, _)| sent.call.timeout());
        timeouts.min().map(|timeout| (timeout / 2, about))
    }

    fn replicas_answered(&mut self, _now: Moment, answer: &Result<(), Trouble>) {
        let asked = self
            .replicated
            .as_mut()
            .map(|all| std::mem::take(&mut all.asked));
        for (sent, reply) in asked.into_iter().flatten() {
            let reply = answer.clone().map(|()| reply);
            self.inbox.push_back(Event::Replied(sent, reply));
        }
    }

    fn next_wakeup(&self) -> Option<Moment> {
        None
    }
}

//! The calls that a node's link has to send, and their outcomes: the links of a sharded connection
//! share one queue, so none of them owns it.

use std::collections::VecDeque;
use std::time::Duration;

use crate::backend::queue::protocol::message::{Grant, Message};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::protocol::call::Sent;
use crate::backend::redis::protocol::reply::Reply;
use crate::backend::redis::transport::call_source::CallSource;
use crate::base::clock::Moment;
use crate::types::key::LockKey;

#[derive(Debug, Default)]
pub(super) struct NodeMailbox {
    outbox: Vec<Sent>,
    inbox: VecDeque<Event>,
    /// Grants and renewals that the node's replicas have to confirm, if any have to.
    replicated: Option<Unconfirmed>,
    /// Until when the node grants nothing, since it may have forgotten locks.
    quarantined: Option<Moment>,
}

/// Answers of the node that its replicas have not confirmed yet.
#[derive(Debug, Default)]
struct Unconfirmed {
    /// Since they were last asked.
    said: Vec<Said>,
    /// The answers about which they are being asked.
    asked: Vec<Said>,
    /// The key that is written to see whether replicas have it.
    mark: Option<LockKey>,
}

/// That a lock is ours.
#[derive(Debug)]
enum Said {
    Replied(Sent, Reply),
    Pushed(Grant),
}

impl Said {
    /// The lock, and how long the replicas may take.
    fn about(&self) -> (Option<LockKey>, Duration) {
        match self {
            Self::Replied(sent, _) => (sent.call.key().cloned(), sent.call.timeout() / 2),
            Self::Pushed(grant) => (grant.key(), PUSH_TIMEOUT),
        }
    }
}

/// How long replicas may take to confirm a grant that was pushed; its waiter asks about it
/// every second.
const PUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// A report of a link, in the order in which it happened.
#[derive(Debug)]
pub(super) enum Event {
    Replied(Sent, Result<Reply, Trouble>),
    Heard(Message),
    Up,
    Down(Trouble),
}

impl NodeMailbox {
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

    /// Whether replicas are to be asked, and it is not known by which key.
    pub(super) fn needs_mark(&self) -> bool {
        let all = self.replicated.as_ref();
        all.is_some_and(|all| all.mark.is_none() && !all.said.is_empty())
    }

    /// Writes a key with this tag to ask replicas: not that of a lock, which may be on its way
    /// to another node.
    pub(super) fn mark_with(&mut self, tag: &str) {
        if let Some(all) = &mut self.replicated {
            all.mark = Some(LockKey::unchecked(tag));
        }
    }

    /// Until when the node grants nothing, if it is not over.
    pub(super) fn quarantined(&self, now: Moment) -> Option<Moment> {
        self.quarantined.filter(|ends| now < *ends)
    }

    /// Replicas have it, or too few of them do.
    fn settle(&mut self, said: Said, answer: &Result<(), Trouble>) {
        let event = match (said, answer) {
            (Said::Replied(sent, reply), answer) => {
                Event::Replied(sent, answer.clone().map(|()| reply))
            }
            (Said::Pushed(grant), Ok(())) => Event::Heard(Message::Granted(grant)),
            // Its waiter asks about it.
            (Said::Pushed(_), Err(_)) => return,
        };
        self.inbox.push_back(event);
    }

    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.inbox.pop_front()
    }
}

impl CallSource for NodeMailbox {
    fn calls(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.outbox)
    }

    fn replied(&mut self, _now: Moment, sent: Sent, result: Result<Reply, Trouble>) {
        match (&mut self.replicated, result) {
            (Some(all), Ok(reply)) if sent.call.is_held_by(&reply) => {
                all.said.push(Said::Replied(sent, reply));
            }
            (_, result) => self.inbox.push_back(Event::Replied(sent, result)),
        }
    }

    fn heard(&mut self, _now: Moment, message: Message) {
        match (&mut self.replicated, message) {
            (Some(all), Message::Granted(grant)) => {
                // Else it is about no lock.
                if grant.key().is_some() {
                    all.said.push(Said::Pushed(grant));
                }
            }
            (_, message) => self.inbox.push_back(Event::Heard(message)),
        }
    }

    fn quarantined(&mut self, now: Moment, left: Option<Duration>) {
        self.quarantined = left.map(|left| now.after(left));
    }

    fn connected(&mut self, _now: Moment) {
        self.inbox.push_back(Event::Up);
    }

    fn disconnected(&mut self, trouble: Trouble) {
        let all = self.replicated.as_mut().map(std::mem::take);
        for said in all
            .into_iter()
            .flat_map(|it| it.asked.into_iter().chain(it.said))
        {
            self.settle(said, &Err(trouble.clone()));
        }
        self.inbox.push_back(Event::Down(trouble));
    }

    fn ask_replicas(&mut self) -> Option<(Duration, LockKey)> {
        let all = self.replicated.as_mut()?;
        if !all.asked.is_empty() {
            return None;
        }
        all.asked = std::mem::take(&mut all.said);
        let (key, _) = all.asked.first()?.about();
        let times = all.asked.iter().map(|said| said.about().1);
        times.min().zip(all.mark.clone().or(key))
    }

    fn replicas_answered(&mut self, _now: Moment, answer: &Result<(), Trouble>) {
        let asked = self.replicated.as_mut().map(|all| {
            if answer.is_err() {
                // The mark may be on its way too.
                all.mark = None;
            }
            std::mem::take(&mut all.asked)
        });
        for said in asked.into_iter().flatten() {
            self.settle(said, answer);
        }
    }

    fn next_wakeup(&self) -> Option<Moment> {
        None
    }
}

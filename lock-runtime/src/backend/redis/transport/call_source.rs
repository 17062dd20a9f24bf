//! Supplies calls to a connection and receives their results.

use std::fmt;
use std::time::Duration;

use crate::backend::queue::protocol::message::Message;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::protocol::call::Queue;
use crate::backend::redis::protocol::call::Sent;
use crate::backend::redis::protocol::reply::Reply;
use crate::base::clock::Moment;
use crate::types::key::LockKey;

/// The queue of a server's only link, or the mailbox between the links to the nodes of a
/// cluster and the one queue of them all.
pub(crate) trait CallSource: fmt::Debug {
    /// The next calls to send.
    fn calls(&mut self) -> Vec<Sent>;

    /// The answer to a call, or why there is none.
    fn replied(&mut self, now: Moment, sent: Sent, result: Result<Reply, Trouble>);

    /// A pushed message.
    fn heard(&mut self, now: Moment, message: Message);

    /// The server may have forgotten locks, and grants nothing for this time. Called before
    /// the connection is open.
    fn quarantined(&mut self, now: Moment, left: Option<Duration>);

    /// The connection is open and subscribed.
    fn connected(&mut self, now: Moment);

    /// The connection is gone, or could not be made. The calls in flight have been
    /// [`replied`](Self::replied) before.
    fn disconnected(&mut self, trouble: Trouble);

    /// How long replicas have to confirm what the server has said, if they are to be
    /// asked now, and a lock that it was about.
    fn ask_replicas(&mut self) -> Option<(Duration, LockKey)>;

    /// Whether they have it.
    fn replicas_answered(&mut self, now: Moment, answer: &Result<(), Trouble>);

    /// Whether calls may wait for further ones, as long as an answer is due.
    fn can_wait(&self) -> bool {
        false
    }

    /// When there may be something to send without an event.
    fn next_wakeup(&self) -> Option<Moment>;
}

impl CallSource for Queue {
    fn calls(&mut self) -> Vec<Sent> {
        Queue::calls(self)
    }

    fn replied(&mut self, now: Moment, sent: Sent, result: Result<Reply, Trouble>) {
        Queue::replied(self, now, sent, result);
    }

    fn heard(&mut self, now: Moment, message: Message) {
        Queue::heard(self, now, message);
    }

    fn quarantined(&mut self, now: Moment, left: Option<Duration>) {
        Queue::quarantined(self, now, left);
    }

    fn connected(&mut self, now: Moment) {
        Queue::connected(self, now);
    }

    fn disconnected(&mut self, trouble: Trouble) {
        Queue::disconnected(self, trouble);
    }

    fn ask_replicas(&mut self) -> Option<(Duration, LockKey)> {
        Queue::ask_replicas(self)
    }

    fn replicas_answered(&mut self, now: Moment, answer: &Result<(), Trouble>) {
        Queue::replicas_answered(self, now, answer);
    }

    fn can_wait(&self) -> bool {
        Queue::can_wait(self)
    }

    fn next_wakeup(&self) -> Option<Moment> {
        Queue::next_wakeup(self)
    }
}

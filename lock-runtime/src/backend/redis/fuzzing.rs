//! What Redis servers send, for `fuzz/`: values, pushed messages, and both against a queue with acquisitions.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use redis::{Value, parse_redis_value};

use super::cluster::routes::Routes;
use super::cluster::topology::{self, Range};
use super::inspect::fuzzing::read_all;
use super::protocol::batch;
use super::protocol::call::{Call, Queue, Sent};
use super::protocol::names::{KeyNames, Layout};
use super::protocol::slot::tag_in;
use super::redlock::fuzzing::merge;
use super::sentinel::read;
use super::transport::outer_slots_in;
use crate::backend::queue::Rules;
use crate::backend::queue::protocol::call::Bearer;
use crate::backend::queue::protocol::message::Message;
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::{Outcome, Request};
use crate::base::clock::Moment;
use crate::types::authority::Host;
use crate::types::kind::Kind;
use crate::types::terms::{LeaseId, Terms, Wait};

/// More calls or outcomes than these, by one message to these few acquisitions, are a loop.
const MOST: usize = 1000;
const ACQUISITIONS: u8 = 6;

/// A message that is understood is written and read as the same.
pub fn pushes(data: &[u8]) {
    if let Some(message) = Message::parse(data) {
        assert_eq!(
            Message::parse(message.to_string().as_bytes()),
            Some(message)
        );
    }
}

/// A value, as queries, sentinels and nodes of a cluster send it.
pub fn replies(data: &[u8]) {
    let Ok(value) = parse_redis_value(data) else {
        return;
    };
    merge(read_all(&value));
    if let Ok(Some(slots)) = outer_slots_in(&value, "n") {
        drop(slots.map(tag_in));
    }
    if let Some(ranges) = topology::read(&value) {
        learn(ranges);
    }
    if let Value::Array(values) = value {
        drop(read(values));
    }
}

/// Takes in what a node says of the slots.
fn learn(ranges: Vec<Range>) {
    let now = Moment::from_nanos(1);
    let seed = Host {
        name: "seed".into(),
        port: 1,
    };
    let mut routes = Routes::new(&[seed], now);
    let seed = routes.nodes().next().map(|(id, _)| id);
    routes.learned(now, seed.expect("one"), ranges);
    for id in routes.masters() {
        assert!(routes.some_slot_of(id).is_some() && routes.host_of(id).is_some());
    }
}

/// Acquisitions of a few locks, and everything that can happen to them: each step is a byte that chooses it, a byte with
/// the length of its argument, and the argument. In values and messages, `#2` stands for the token of the third
/// acquisition, and `$2` for its name.
pub fn queue(data: &[u8]) {
    let Some((rules, mut rest)) = data.split_first() else {
        return;
    };
    let mut scene = Scene::new(*rules);
    while let [step, length, argument @ ..] = rest {
        let length = usize::from(*length).min(argument.len());
        let (argument, behind) = argument.split_at(length);
        scene.step(*step, argument);
        rest = behind;
    }
}

struct Scene {
    queue: Queue,
    names: KeyNames,
    now: Moment,
    in_flight: VecDeque<Sent>,
    /// The acquisitions, with whether each holds its lock.
    ids: BTreeMap<LeaseId, bool>,
    next_id: u64,
    bearers: Vec<Bearer>,
}

impl Scene {
    fn new(rules: u8) -> Self {
        let rules = Rules {
            replicated: rules & 1 > 0,
            pushes_are_hints: rules & 2 > 0,
            passes: rules & 4 > 0,
        };
        let now = Moment::from_nanos(1);
        let mut queue = Queue::new(rules);
        queue.connected(now);
        Self {
            queue,
            names: KeyNames::new("lock", Layout::Shared).expect("random numbers"),
            now,
            in_flight: VecDeque::new(),
            ids: BTreeMap::new(),
            next_id: 0,
            bearers: Vec::new(),
        }
    }

    fn step(&mut self, step: u8, argument: &[u8]) {
        let first = argument.first().copied().unwrap_or(0);
        match step % 8 {
            0 => self.acquire(first),
            1 => self.answer(argument),
            2 => {
                if let Some(message) = Message::parse(&self.named(argument)) {
                    self.queue.heard(self.now, message);
                }
            }
            3 => {
                let time = argument
                    .iter()
                    .fold(1, |time: u64, it| time << 4 | u64::from(*it));
                self.now = self.now.after(Duration::from_millis(time));
                self.queue.tick(self.now);
            }
            4 => self.ask_for_end(first),
            5 => self.reconnect(),
            6 => {
                if let Some(sent) = self.in_flight.pop_front() {
                    let trouble = Trouble::not_now("refused");
                    self.queue.replied(self.now, sent, Err(trouble));
                }
            }
            _ => self.queue.ask_waiters(self.now),
        }
        self.take();
    }

    fn acquire(&mut self, settings: u8) {
        if self.ids.len() >= usize::from(ACQUISITIONS) {
            return;
        }
        let id = LeaseId(self.next_id);
        self.next_id += 1;
        let key = if settings & 1 > 0 { "a" } else { "b" };
        let terms = Terms {
            wait: if settings & 2 > 0 {
                Wait::AtMost(Duration::ZERO)
            } else {
                Wait::Forever
            },
            kind: match settings >> 2 & 3 {
                0 => Kind::Read,
                1 => Kind::Permits(2),
                _ => Kind::Exclusive,
            },
            min_hold: (settings & 16 > 0).then_some(Duration::from_secs(3)),
            max_waiters: (settings & 32 > 0).then_some(2),
            renew: settings & 64 == 0,
            ..Terms::of(id, key, Duration::from_secs(10))
        };
        self.ids.insert(id, false);
        self.queue
            .submit(self.now, Request::Acquire(Arc::new(terms)));
    }

    /// The oldest calls are answered, one or as many as went together.
    fn answer(&mut self, value: &[u8]) {
        let Ok(value) = parse_redis_value(value) else {
            return;
        };
        let value = self.named_in(value);
        let calls = self.in_flight.make_contiguous();
        let count = batch::next(calls, self.names.together()).len();
        if count == 0 {
            return;
        }
        if batch::is_refused(&calls[..count], &value) {
            return;
        }
        let Some(replies) = batch::decode(&calls[..count], value) else {
            return self.reconnect();
        };
        let sent: Vec<_> = self.in_flight.drain(..count).collect();
        for (sent, reply) in sent.into_iter().zip(replies) {
            self.queue.replied(self.now, sent, reply);
        }
    }

    fn ask_for_end(&mut self, which: u8) {
        let at = usize::from(which >> 2) % usize::from(ACQUISITIONS);
        let Some((&id, &held)) = self.ids.iter().nth(at) else {
            return;
        };
        let request = match (held, which & 3) {
            (true, 0 | 1) => Request::Renew(id),
            (true, _) => Request::Release(id),
            (false, _) => Request::Abandon(id),
        };
        if !matches!(request, Request::Renew(_)) {
            self.ids.remove(&id);
        }
        self.queue.submit(self.now, request);
    }

    fn reconnect(&mut self) {
        let trouble = Trouble::not_now("cut");
        for sent in std::mem::take(&mut self.in_flight) {
            self.queue.replied(self.now, sent, Err(trouble.clone()));
        }
        self.queue.disconnected(trouble);
        self.queue.connected(self.now);
    }

    /// Takes what the queue has to send and to tell.
    fn take(&mut self) {
        let calls = self.queue.calls();
        assert!(calls.len() < MOST, "{} calls", calls.len());
        for sent in &calls {
            drop(sent.call.encode(&self.names, false));
            if let Call::Acquire { bearer, .. } = &sent.call {
                self.bearers.push(bearer.clone());
            }
        }
        self.bearers.drain(..self.bearers.len().saturating_sub(10));
        self.in_flight.extend(calls);
        for _ in 0..MOST {
            match self.queue.next_outcome() {
                Some(Outcome::Granted { id, .. }) => {
                    if let Some(held) = self.ids.get_mut(&id) {
                        *held = true;
                    }
                }
                Some(outcome) => {
                    if let Some(id) = outcome.ended() {
                        self.ids.remove(&id);
                    }
                }
                None => return,
            }
        }
        panic!("outcomes without end");
    }

    fn named_in(&self, value: Value) -> Value {
        match value {
            Value::BulkString(bytes) => Value::BulkString(self.named(&bytes)),
            Value::SimpleString(text) => Value::BulkString(self.named(text.as_bytes())),
            Value::Array(items) => {
                Value::Array(items.into_iter().map(|it| self.named_in(it)).collect())
            }
            other => other,
        }
    }

    /// The text with tokens and names in place of their numbers.
    fn named(&self, text: &[u8]) -> Vec<u8> {
        let mut named = Vec::new();
        let mut rest = text;
        while let Some((&byte, behind)) = rest.split_first() {
            rest = behind;
            let bearer = behind.first().filter(|it| it.is_ascii_digit());
            let bearer = bearer.and_then(|it| self.bearers.get(usize::from(it - b'0')));
            match (byte, bearer) {
                (b'#', Some(bearer)) => named.extend(bearer.token.to_string().bytes()),
                (b'$', Some(bearer)) => named.extend(bearer.name.bytes()),
                _ => {
                    named.push(byte);
                    continue;
                }
            }
            rest = &behind[1..];
        }
        named
    }
}

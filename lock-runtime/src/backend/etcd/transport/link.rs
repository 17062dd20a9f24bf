//! The connection to one member: sends calls and watches, and connects again when it
//! breaks.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use h2::SendStream;
use prost::bytes::Bytes;

use super::channel::{Channel, Incoming, frame};
use super::dial::{Cluster, Dialer, MEMBER_LIST, Opened};
use crate::backend::etcd::protocol::call::{Call, Reply, Sent};
use crate::backend::etcd::protocol::messages::{
    WatchCancelRequest, WatchCreateRequest, WatchOp, WatchRequest, WatchResponse,
};
use crate::backend::etcd::protocol::trouble::Trouble;
use crate::backend::etcd::queue::{Order, Recipient, Seen, Watch};
use crate::base::clock::Moment;
use crate::telemetry::events;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// A last chance for an answer that has arrived but has not been read: the whole process
/// may have been stopped.
const GRACE: Duration = Duration::from_millis(20);
/// The filter that leaves out what is written.
const NO_PUT: i32 = 0;

type Dialling = Pin<Box<dyn Future<Output = Result<Opened, Trouble>> + Send>>;

pub(crate) struct Link {
    number: usize,
    dialer: Dialer,
    state: State,
    /// How many attempts to connect have failed in turn.
    failed: u32,
    pause: Duration,
    /// What waits for room on the connection.
    unsent: VecDeque<Sent<Recipient>>,
    in_flight: Vec<InFlight>,
    grace: Option<Moment>,
    /// When something was answered last.
    heard: Moment,
    /// What waits for the stream of all watches.
    unset: VecDeque<WatchOp>,
    watching: Option<Watching>,
}

enum State {
    Down { until: Moment },
    Dialling(Dialling),
    Up(Box<Channel>),
}

struct InFlight {
    sent: Sent<Recipient>,
    /// From when on the member is silent.
    silent: Moment,
    incoming: Incoming,
}

/// The stream of all watches.
struct Watching {
    sending: SendStream<Bytes>,
    incoming: Incoming,
    /// The watches that were not answered yet, in their order.
    asked: VecDeque<u64>,
}

/// What a link reports.
pub(crate) enum Report {
    Up(Cluster),
    Down(Trouble),
    Answer(Sent<Recipient>, Result<Reply, Trouble>),
    Seen(u64, Seen),
}

impl Link {
    pub(crate) fn new(number: usize, dialer: Dialer, now: Moment) -> Self {
        Self {
            number,
            dialer,
            state: State::Down { until: now },
            failed: 0,
            pause: FIRST_PAUSE,
            unsent: VecDeque::new(),
            in_flight: Vec::new(),
            grace: None,
            heard: now,
            unset: VecDeque::new(),
            watching: None,
        }
    }

    /// The way to the member.
    pub(crate) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(self.state, State::Up(_))
    }

    /// When something is due that no event announces.
    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        match self.state {
            State::Down { until } => Some(until),
            _ => self.silent_at(),
        }
    }

    /// Writes, reads and connects; says what has come of it.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, now: Moment, reports: &mut Vec<Report>) {
        if matches!(self.state, State::Down { until } if until <= now) {
            let dialer = self.dialer.clone().more_patient(self.failed);
            self.state = State::Dialling(Box::pin(dialer.open()));
        }
        if let State::Dialling(dialling) = &mut self.state
            && let Poll::Ready(result) = dialling.as_mut().poll(cx)
        {
            match result {
                Ok(opened) => {
                    events::connected(self.number);
                    self.failed = 0;
                    reports.push(Report::Up(opened.cluster()));
                    self.state = State::Up(Box::new(opened.channel));
                }
                Err(trouble) => {
                    self.failed = self.failed.saturating_add(1);
                    self.rest(now);
                    reports.push(Report::Down(trouble));
                }
            }
        }
        let Some(ended) = self.exchange(cx, now) else {
            return;
        };
        let broken = self.read(now, reports);
        if let Poll::Ready(trouble) = ended {
            self.broken(now, &trouble, reports);
        } else if let Some(trouble) = broken {
            self.broken(now, &trouble, reports);
        } else if self.silent_at().is_some_and(|at| at <= now) && !self.grant_grace(now) {
            let trouble = Trouble::unknown("the member does not answer");
            self.broken(now, &trouble, reports);
        }
    }

    /// Writes as much as there is room for, and reads; whether the connection has ended.
    fn exchange(&mut self, cx: &mut Context<'_>, now: Moment) -> Option<Poll<Trouble>> {
        loop {
            let any = self.write(cx, now);
            let State::Up(channel) = &mut self.state else {
                return None;
            };
            let ended = channel.poll(cx);
            if !any || ended.is_ready() {
                return Some(ended);
            }
        }
    }

    /// Opens as many requests as there is room for; `false` if it was none.
    fn write(&mut self, cx: &mut Context<'_>, now: Moment) -> bool {
        let State::Up(channel) = &mut self.state else {
            return false;
        };
        let mut any = false;
        while !self.unset.is_empty() || !self.unsent.is_empty() {
            if let Some(watching) = &mut self.watching {
                self.unset.drain(..).for_each(|op| watching.send(op));
            }
            let opens_watches = !self.unset.is_empty();
            if !opens_watches && self.unsent.is_empty() || !channel.has_room(cx) {
                break;
            }
            any = true;
            if opens_watches {
                self.watching = Watching::open(channel);
                if self.watching.is_none() {
                    return false;
                }
            } else if let Some(sent) = self.unsent.pop_front() {
                let incoming = call(channel, &sent.call);
                let silent = now.after(sent.call_timeout);
                self.in_flight.push(InFlight {
                    sent,
                    silent,
                    incoming,
                });
            }
        }
        any
    }

    /// Takes in what has arrived; says why the connection is of no use any more.
    fn read(&mut self, now: Moment, reports: &mut Vec<Report>) -> Option<Trouble> {
        // The channel's poll wakes the driver.
        let mut cx = Context::from_waker(Waker::noop());
        let mut broken = None;
        let mut at = 0;
        while let Some(flight) = self.in_flight.get_mut(at) {
            let Poll::Ready(result) = flight.poll(&mut cx) else {
                at += 1;
                continue;
            };
            match &result {
                Err(trouble @ (Trouble::Unknown(_) | Trouble::LoggedOut(_))) => {
                    broken = Some(trouble.clone());
                }
                _ => self.pause = FIRST_PAUSE,
            }
            let sent = self.in_flight.remove(at).sent;
            self.grace = None;
            self.heard = now;
            reports.push(Report::Answer(sent, result));
        }
        while let Some(watching) = &mut self.watching {
            match watching.incoming.poll_next::<WatchResponse>(&mut cx) {
                Poll::Ready(Ok(response)) => reports.extend(watching.seen(&response)),
                Poll::Ready(Err(trouble)) => return Some(trouble),
                Poll::Pending => break,
            }
        }
        broken
    }

    /// Sends a call once there is room, where there is a connection. What keeps leases
    /// alive goes first.
    pub(crate) fn call(&mut self, sent: Sent<Recipient>) {
        if !self.is_up() {
            return;
        }
        if let Recipient::Session(..) = sent.to {
            self.unsent.push_front(sent);
        } else {
            self.unsent.push_back(sent);
        }
    }

    /// Sets or ends a watch. One that cannot be sent is set again on another connection.
    pub(crate) fn watch(&mut self, order: Order) {
        if !self.is_up() {
            return;
        }
        self.unset.push_back(match order {
            Order::Watch(watch) => WatchOp::Create(create(watch)),
            Order::Unwatch(id) => WatchOp::Cancel(WatchCancelRequest {
                watch_id: number(id),
            }),
            Order::Call(_) => return,
        });
    }

    fn broken(&mut self, now: Moment, trouble: &Trouble, reports: &mut Vec<Report>) {
        events::disconnected(self.number, &trouble.cause());
        self.watching = None;
        self.unset.clear();
        self.grace = None;
        self.rest(now);
        for flight in self.in_flight.drain(..) {
            let result = Err(Trouble::Unknown(trouble.cause()));
            reports.push(Report::Answer(flight.sent, result));
        }
        for sent in self.unsent.drain(..) {
            let result = Err(Trouble::NotNow(trouble.cause()));
            reports.push(Report::Answer(sent, result));
        }
        reports.push(Report::Down(Trouble::Unknown(trouble.cause())));
    }

    /// Connects again after a pause, which grows until a call is answered.
    fn rest(&mut self, now: Moment) {
        let until = now.after(self.pause.mul_f64(fastrand::f64()));
        self.state = State::Down { until };
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// When the member counts as silent if nothing arrives until then.
    fn silent_at(&self) -> Option<Moment> {
        let in_flight = self.in_flight.iter().map(|flight| flight.silent);
        // While there is no room at all, nothing is in flight.
        let since = |sent: &Sent<Recipient>| sent.at.max(self.heard).after(sent.call_timeout);
        let unsent = self.unsent.iter().map(since);
        let first = in_flight.min().or_else(|| unsent.min())?;
        Some(self.grace.unwrap_or(first))
    }

    fn grant_grace(&mut self, now: Moment) -> bool {
        let first = self.grace.is_none();
        self.grace = Some(now.after(GRACE));
        first
    }
}

impl InFlight {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Reply, Trouble>> {
        let incoming = &mut self.incoming;
        match &self.sent.call {
            Call::Txn(_) => incoming.poll_answer(cx).map_ok(Reply::Txn),
            Call::Range(_) => incoming.poll_answer(cx).map_ok(Reply::Range),
            Call::Grant(_) | Call::KeepAlive(_) => incoming.poll_answer(cx).map_ok(Reply::Lease),
            Call::Members(_) => incoming.poll_answer(cx).map_ok(Reply::Members),
        }
    }
}

impl Watching {
    /// `None` if the connection is about to end.
    fn open(channel: &mut Channel) -> Option<Self> {
        let (sending, incoming) = channel.request("/etcdserverpb.Watch/Watch").ok()?;
        Some(Self {
            sending,
            incoming,
            asked: VecDeque::new(),
        })
    }

    fn send(&mut self, op: WatchOp) {
        if let WatchOp::Create(create) = &op {
            self.asked.push_back(watch(create.watch_id));
        }
        let request = Some(op);
        // The end of a stream is noticed where it is read.
        let _ = self
            .sending
            .send_data(frame(&WatchRequest { request }), false);
    }

    /// What a watch reports; nothing when it begins.
    fn seen(&mut self, response: &WatchResponse) -> Option<Report> {
        let mut id = watch(response.watch_id);
        if response.watch_id < 0 {
            // Answers come in the order of the requests.
            id = self.asked.pop_front()?;
        } else if response.created {
            self.asked.retain(|asked| *asked != id);
        }
        let seen = if response.canceled {
            Seen::Ended
        } else if response.events.is_empty() {
            return None;
        } else {
            Seen::Changed
        };
        Some(Report::Seen(id, seen))
    }
}

fn call(channel: &mut Channel, call: &Call) -> Incoming {
    match call {
        Call::Txn(message) => channel.call("/etcdserverpb.KV/Txn", message),
        Call::Range(message) => channel.call("/etcdserverpb.KV/Range", message),
        Call::Grant(message) => channel.call("/etcdserverpb.Lease/LeaseGrant", message),
        Call::KeepAlive(message) => channel.call("/etcdserverpb.Lease/LeaseKeepAlive", message),
        Call::Members(message) => channel.call(MEMBER_LIST, message),
    }
}

fn create(watch: Watch) -> WatchCreateRequest {
    WatchCreateRequest {
        key: watch.span.key,
        range_end: watch.span.end,
        start_revision: watch.from,
        filters: if watch.writes {
            Vec::new()
        } else {
            vec![NO_PUT]
        },
        watch_id: number(watch.id),
    }
}

fn number(watch: u64) -> i64 {
    i64::try_from(watch).unwrap_or(i64::MAX)
}

fn watch(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("number", &self.number)
            .field("up", &self.is_up())
            .field("in_flight", &self.in_flight.len())
            .finish_non_exhaustive()
    }
}

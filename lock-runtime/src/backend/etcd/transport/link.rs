//! The connection to one member: sends calls and watches, and connects again when it
//! breaks.

use std::collections::VecDeque;
use std::fmt;
use std::task::{Context, Poll, Waker};

use h2::SendStream;
use prost::bytes::Bytes;

use super::channel::{Channel, Incoming, frame};
use super::dial::{Cluster, DELETE_RANGE, Dialer, MEMBER_LIST, Opened};
use crate::backend::etcd::protocol::call::{Call, Reply, Sent};
use crate::backend::etcd::protocol::messages::{
    Event, WatchCancelRequest, WatchCreateRequest, WatchOp, WatchRequest, WatchResponse,
};
use crate::backend::etcd::protocol::trouble::Trouble;
use crate::backend::etcd::queue::{Order, Recipient, Seen, Watch};
use crate::backend::transport::connection::Connection;
use crate::base::clock::Moment;
use crate::types::health::LastError;

/// The filter that leaves out writes.
const NO_PUT: i32 = 0;
/// The type of an event.
const DELETE: i32 = 1;

pub(crate) struct Link {
    connection: Connection<Result<Opened, Trouble>, Channel>,
    /// Why the last attempt to connect has failed.
    failure: Option<Trouble>,
    dialer: Dialer,
    /// Calls that wait for a free stream of the connection.
    unsent: VecDeque<Sent<Recipient>>,
    in_flight: Vec<InFlight>,
    /// Requests that wait for the stream of all watches.
    unset: VecDeque<WatchOp>,
    watching: Option<Watching>,
}

struct InFlight {
    sent: Sent<Recipient>,
    written: Moment,
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

/// A report of a link.
pub(crate) enum Report {
    Up(Cluster),
    Down(Trouble),
    Answer(Sent<Recipient>, Result<Reply, Trouble>),
    Seen(u64, Seen),
}

impl Link {
    pub(crate) fn new(number: usize, dialer: Dialer, now: Moment) -> Self {
        Self {
            connection: Connection::new(number, 1, now),
            failure: None,
            dialer,
            unsent: VecDeque::new(),
            in_flight: Vec::new(),
            unset: VecDeque::new(),
            watching: None,
        }
    }

    /// The way to the member.
    pub(crate) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    pub(crate) fn is_up(&self) -> bool {
        self.connection.is_up()
    }

    /// Why no attempt to connect will succeed.
    pub(crate) fn refusal(&self) -> Option<&Trouble> {
        let failure = self.failure.as_ref();
        failure.filter(|it| matches!(it, Trouble::Never(_)))
    }

    pub(crate) fn last_error(&self) -> Option<&LastError> {
        self.connection.last_error.as_ref()
    }

    /// When something is due that no event announces.
    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        self.connection.next_wakeup(self.answer_by())
    }

    /// Writes, reads and connects; says what has come of it.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, now: Moment, reports: &mut Vec<Report>) {
        let opened = self.connection.poll_attempt(cx, now, |backoff| {
            let dialer = self.dialer.clone();
            let timeout = backoff.attempt(dialer.connect_timeout);
            dialer.open(timeout)
        });
        match opened {
            Some(Ok(opened)) => {
                reports.push(Report::Up(opened.cluster()));
                self.connection.opened(now, opened.channel);
                self.failure = None;
            }
            Some(Err(trouble)) => {
                self.connection.failed(now, &trouble.cause());
                self.failure = Some(trouble.clone());
                reports.push(Report::Down(trouble));
            }
            None => {}
        }
        let Some(ended) = self.exchange(cx, now) else {
            return;
        };
        let broken = self.read(now, reports);
        self.give_up(now, reports);
        let answer_by = self.answer_by();
        if let Poll::Ready(trouble) = ended {
            self.broken(now, &trouble, reports);
        } else if let Some(trouble) = broken {
            self.broken(now, &trouble, reports);
        } else if self.in_flight.is_empty() && self.is_retired(cx) {
            let trouble = Trouble::unknown("the member retires the connection");
            self.broken(now, &trouble, reports);
        } else if self.connection.silence.is_over(now, answer_by) {
            let trouble = Trouble::unknown("the member does not answer");
            self.broken(now, &trouble, reports);
        }
    }

    fn is_retired(&mut self, cx: &mut Context<'_>) -> bool {
        self.connection
            .up_mut()
            .is_some_and(|channel| channel.is_retired(cx))
    }

    /// Writes as much as the connection accepts, and reads; whether the connection has ended.
    fn exchange(&mut self, cx: &mut Context<'_>, now: Moment) -> Option<Poll<Trouble>> {
        loop {
            let any = self.write(cx, now);
            let channel = self.connection.up_mut()?;
            let ended = channel.poll(cx);
            if !any || ended.is_ready() {
                return Some(ended);
            }
        }
    }

    /// Opens as many requests as the connection accepts; `false` if it accepts none.
    fn write(&mut self, cx: &mut Context<'_>, now: Moment) -> bool {
        let Some(channel) = self.connection.up_mut() else {
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
                    written: now,
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
            let Poll::Ready(mut result) = flight.poll(&mut cx) else {
                at += 1;
                continue;
            };
            if self.dialer.has_login() {
                result = result.map_err(Trouble::despite_login);
            }
            match &result {
                Err(trouble @ (Trouble::Unknown(_) | Trouble::LoggedOut(_))) => {
                    broken = Some(trouble.clone());
                }
                _ => self.connection.backoff.worked(),
            }
            let sent = self.in_flight.remove(at).sent;
            self.connection.silence.heard(now);
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

    /// Gives up calls that are not answered while others are: a proxy may have lost one, or share them among members.
    fn give_up(&mut self, now: Moment, reports: &mut Vec<Report>) {
        let silence = &self.connection.silence;
        let is_lost = |it: &mut InFlight| silence.passes_over(now, it.written);
        for flight in self.in_flight.extract_if(.., is_lost) {
            let trouble = Trouble::unknown("the member answers other calls, and not this one");
            reports.push(Report::Answer(flight.sent, Err(trouble)));
        }
    }

    /// Sends a call once the connection is up and accepts it. Calls that keep leases alive
    /// go first.
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
        self.connection.broken(now, &trouble.cause());
        self.watching = None;
        self.unset.clear();
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

    /// Until when an answer must come in.
    fn answer_by(&self) -> Option<Moment> {
        let in_flight = self.in_flight.iter().map(|flight| flight.silent);
        // While the connection accepts nothing at all, nothing is in flight.
        let since =
            |sent: &Sent<Recipient>| self.connection.silence.limit(sent.at, sent.call_timeout);
        let unsent = self.unsent.iter().map(since);
        in_flight.min().or_else(|| unsent.min())
    }
}

impl InFlight {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Reply, Trouble>> {
        let incoming = &mut self.incoming;
        match &self.sent.call {
            Call::Txn(_) => incoming.poll_answer(cx).map_ok(Reply::Txn),
            Call::Delete(_) => incoming.poll_answer(cx).map_ok(Reply::Deleted),
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

    /// The report of a watch.
    fn seen(&mut self, response: &WatchResponse) -> Option<Report> {
        let mut id = watch(response.watch_id);
        if response.watch_id < 0 {
            // Answers come in the order of the requests.
            id = self.asked.pop_front()?;
        } else if response.created {
            self.asked.retain(|asked| *asked != id);
        }
        let header = response.header.as_ref();
        let deleted = response.events.iter().rev().find_map(deleted_at);
        let seen = match deleted {
            _ if response.canceled => Seen::Ended,
            _ if response.created => Seen::Begun(header.map_or(i64::MAX, |it| it.revision)),
            Some(revision) => Seen::Deleted(revision),
            None => Seen::Changed(response.events.iter().filter_map(changed_at).max()?),
        };
        Some(Report::Seen(id, seen))
    }
}

/// The revision of a deletion.
fn deleted_at(event: &Event) -> Option<i64> {
    changed_at(event).filter(|revision| event.r#type == DELETE && *revision > 0)
}

/// The revision of a write or a deletion.
fn changed_at(event: &Event) -> Option<i64> {
    Some(event.kv.as_ref()?.mod_revision)
}

fn call(channel: &mut Channel, call: &Call) -> Incoming {
    match call {
        Call::Txn(message) => channel.call("/etcdserverpb.KV/Txn", message),
        Call::Delete(message) => channel.call(DELETE_RANGE, message),
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
            .field("number", &self.connection.number)
            .field("up", &self.is_up())
            .field("in_flight", &self.in_flight.len())
            .finish_non_exhaustive()
    }
}

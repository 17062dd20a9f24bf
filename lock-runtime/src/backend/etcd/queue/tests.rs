//! What claims, sessions and watches do, one call after the other.

mod batches;
mod downgrading;
mod endings;
mod entries;
mod sessions;
mod slots;
mod tickets;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use super::order::SessionStep;
use super::{Order, Queue, Quorum, Recipient, SHORT, Seen, Step, Watch};
use crate::backend::etcd::protocol::call::{Call, Reply, Sent};
use crate::backend::etcd::protocol::entry;
use crate::backend::etcd::protocol::messages::{
    DeleteRangeResponse, KeyValue, LeaseResponse, RangeRequest, RangeResponse, Request as Op,
    Response, ResponseHeader, ResponseOp, TxnRequest, TxnResponse,
};
use crate::backend::etcd::protocol::trouble::{Trouble, cause};
use crate::backend::token::Token;
use crate::backend::{Outcome, Request};
use crate::base::clock::Moment;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::terms::{LeaseId, Terms, Wait};

const TTL: Duration = Duration::from_secs(10);
const LEASE: i64 = 77;

/// A queue whose calls are answered by hand.
struct Story {
    queue: Queue,
    now: Moment,
    calls: Vec<Sent<Recipient>>,
    watches: Vec<Watch>,
}

impl Story {
    /// Connected to a cluster that needs so many confirmations.
    fn new(majority: usize) -> Self {
        Self::with_history(majority, 0)
    }

    /// The same, of a manager that remembers so many grants.
    fn with_history(majority: usize, most: usize) -> Self {
        let mut queue = Queue::new("lock", most);
        let now = Moment::from_nanos(1);
        queue.needs(Quorum {
            needed: majority,
            ..Quorum::of_one()
        });
        queue.connected(now);
        Self {
            queue,
            now,
            calls: Vec::new(),
            watches: Vec::new(),
        }
    }

    /// With a lease whose marker stands at revision 1.
    fn with_session(majority: usize) -> Self {
        let mut story = Self::new(majority);
        story.acquire(0, |_| {});
        story.open_session();
        story.enter(Ok(entered(2, vec![])));
        story.granted(0);
        story.pass(SHORT);
        story
    }

    fn open_session(&mut self) {
        let grant = self.session_call(SessionStep::Grant);
        self.answer(&grant, Ok(lease(1, LEASE, 10)));
        let mark = self.mark();
        self.answer(&mark, Ok(txn(1, true, vec![])));
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.after(time);
        self.queue.tick(self.now);
    }

    fn submit(&mut self, request: Request) {
        self.queue.submit(self.now, request);
    }

    fn acquire(&mut self, id: u64, change: impl FnOnce(&mut Terms)) {
        let mut terms = Terms::of(LeaseId(id), "k", TTL);
        change(&mut terms);
        self.submit(Request::Acquire(Arc::new(terms)));
    }

    /// Takes in what the queue wants sent.
    fn collect(&mut self) {
        for order in self.queue.orders() {
            match order {
                Order::Call(sent) => self.calls.push(sent),
                Order::Watch(watch) => self.watches.push(watch),
                Order::Unwatch(id) => self.watches.retain(|it| it.id != id),
            }
        }
    }

    /// The call that was sent next and is of this kind.
    fn find(&mut self, is_it: impl Fn(&Recipient) -> bool) -> Option<Sent<Recipient>> {
        self.collect();
        let at = self.calls.iter().position(|sent| is_it(&sent.to))?;
        Some(self.calls.remove(at))
    }

    fn session_call(&mut self, step: SessionStep) -> Sent<Recipient> {
        let found = self.find(|it| matches!(it, Recipient::Session(_, sent) if *sent == step));
        found.unwrap_or_else(|| panic!("no {step:?} among {:?}", self.calls))
    }

    /// The write of a marker that was sent next.
    fn mark(&mut self) -> Sent<Recipient> {
        let is_mark = |it: &Recipient| matches!(it, Recipient::Session(_, SessionStep::Mark(_)));
        self.find(is_mark).expect("a marker")
    }

    fn claim_call(&mut self, step: Step) -> Sent<Recipient> {
        let found = self.find(|it| matches!(it, Recipient::Claim(_, sent) if *sent == step));
        found.unwrap_or_else(|| panic!("no {step:?} among {:?}", self.calls))
    }

    fn sends(&mut self, step: Step) -> bool {
        self.collect();
        let is_it =
            |sent: &Sent<Recipient>| matches!(sent.to, Recipient::Claim(_, it) if it == step);
        self.calls.iter().any(is_it)
    }

    fn answer(&mut self, sent: &Sent<Recipient>, result: Result<Reply, Trouble>) {
        let result = result.map(|reply| read_from(&sent.call, reply));
        self.queue.answered(self.now, sent, result);
    }

    /// Answers the next call that makes an entry; its key.
    fn enter(&mut self, result: Result<Reply, Trouble>) -> Vec<u8> {
        let sent = self.claim_call(Step::Enter);
        let key = put(&sent.call);
        self.answer(&sent, result);
        key
    }

    fn outcome(&mut self) -> Option<Outcome> {
        self.queue.next_outcome()
    }

    /// The grant that comes next: its fence, and since when it counts.
    fn granted(&mut self, id: u64) -> (u64, Moment) {
        match self.outcome() {
            Some(Outcome::Granted {
                id: LeaseId(granted),
                fence,
                since,
                ..
            }) if granted == id => (fence, since),
            other => panic!("no grant of {id}: {other:?}"),
        }
    }

    fn waits(&mut self, id: u64) {
        let outcome = self.outcome();
        assert!(
            matches!(outcome, Some(Outcome::Waiting { id: LeaseId(it), .. }) if it == id),
            "{outcome:?}"
        );
    }

    fn released(&mut self, id: u64) -> bool {
        match self.outcome() {
            Some(Outcome::Released {
                id: LeaseId(released),
                result: Ok(held),
            }) if released == id => held,
            other => panic!("{id} is not released: {other:?}"),
        }
    }

    /// The one watch that is set.
    fn watch(&mut self, claims: usize) -> Watch {
        self.collect();
        assert_eq!(self.watches.len(), claims, "{:?}", self.watches);
        self.watches.last().cloned().expect("a watch")
    }

    /// Answers the keep-alive that is in flight as a member does.
    fn alive(&mut self, sent: &Sent<Recipient>, member: u64, ttl: i64) {
        self.queue
            .answered(self.now, sent, Ok(lease(member, LEASE, ttl)));
    }

    /// The keep-alive that is in flight.
    fn beat(&mut self) -> Sent<Recipient> {
        let is_beat = |it: &Recipient| matches!(it, Recipient::Session(_, SessionStep::Alive(_)));
        self.find(is_beat).expect("a keep-alive")
    }

    /// The look at the marker that is in flight.
    fn look(&mut self) -> Option<Sent<Recipient>> {
        self.find(|it| matches!(it, Recipient::Session(_, SessionStep::Look { .. })))
    }
}

/// The key that a call writes.
fn put(call: &Call) -> Vec<u8> {
    written(call, 0).key
}

/// The entry that a call makes at a revision.
fn written(call: &Call, revision: i64) -> KeyValue {
    let Call::Txn(TxnRequest { success, .. }) = call else {
        panic!("no transaction: {call:?}");
    };
    let put = success.iter().find_map(|op| match &op.request {
        Some(Op::Put(put)) => Some(put.clone()),
        _ => None,
    });
    let put = put.expect("something is written");
    KeyValue {
        key: put.key,
        value: put.value,
        create_revision: revision,
        mod_revision: revision,
    }
}

fn unknown() -> Trouble {
    Trouble::Unknown(cause("cut"))
}

fn no_lease() -> Trouble {
    Trouble::NoLease(cause("no lease"))
}

fn lease(member: u64, id: i64, ttl: i64) -> Reply {
    let header = Some(header(member, 1));
    Reply::Lease(LeaseResponse { header, id, ttl })
}

fn header(member_id: u64, revision: i64) -> ResponseHeader {
    ResponseHeader {
        member_id,
        revision,
    }
}

/// An entry in a queue; a kind that was not asked for is that of somebody else.
fn kv(kind: Kind, created: i64) -> KeyValue {
    let token = Token::new().expect("random numbers");
    let keys = crate::backend::etcd::protocol::keys::Keys::new("lock");
    KeyValue {
        key: keys.entry(&LockKey::of("k"), kind.into(), 1_000 + created, 0),
        create_revision: created,
        mod_revision: created,
        value: entry::value(TTL, &format!("{token} 1@host")),
    }
}

/// The marker of the session's lease, written at a revision.
fn marker(written: i64) -> KeyValue {
    let keys = crate::backend::etcd::protocol::keys::Keys::new("lock");
    KeyValue {
        key: keys.marker(LEASE),
        ..kv(Kind::Exclusive, written)
    }
}

/// The entry of that key.
fn entry_of(key: Vec<u8>, created: i64) -> KeyValue {
    KeyValue {
        key,
        create_revision: created,
        ..kv(Kind::Exclusive, created)
    }
}

fn read(revision: i64, kvs: Vec<KeyValue>) -> RangeResponse {
    RangeResponse {
        header: Some(header(1, revision)),
        count: i64::try_from(kvs.len()).expect("a few"),
        kvs,
        more: false,
    }
}

/// What the reads of a transaction find where these are all entries.
fn read_from(call: &Call, reply: Reply) -> Reply {
    let Call::Txn(asked) = call else {
        return reply;
    };
    let (succeeded, revision, found, others) = match reply {
        Reply::Range(range) => (true, range.revision(), range.kvs, Vec::new()),
        Reply::Txn(txn) => {
            let (succeeded, revision) = (txn.succeeded, txn.revision());
            let is_read = |it: &ResponseOp| matches!(it.response, Some(Response::Range(_)));
            let others = txn.responses.iter().filter(|it| !is_read(it));
            let others = others.cloned().collect();
            let found = txn.ranges().flat_map(|it| it.kvs).collect();
            (succeeded, revision, found, others)
        }
        other => return other,
    };
    let ops = if succeeded {
        &asked.success
    } else {
        &asked.failure
    };
    let reads = ops.iter().filter_map(|op| match &op.request {
        Some(Op::Range(range)) => Some(find(range, revision, &found)),
        _ => None,
    });
    let Reply::Txn(mut answer) = txn(revision, succeeded, reads.collect()) else {
        unreachable!("a transaction");
    };
    answer.responses.extend(others);
    Reply::Txn(answer)
}

/// As etcd does it.
fn find(range: &RangeRequest, revision: i64, all: &[KeyValue]) -> RangeResponse {
    let is_in = |key: &Vec<u8>| match &range.range_end[..] {
        [] => *key == range.key,
        end => range.key <= *key && &key[..] < end,
    };
    let within: Vec<_> = all.iter().filter(|it| is_in(&it.key)).cloned().collect();
    let mut answer = read(revision, within);
    let most = range.max_create_revision;
    answer
        .kvs
        .retain(|it| most == 0 || it.create_revision <= most);
    answer.kvs.sort_by_key(|it| match range.sort_order {
        2 => -it.create_revision,
        _ => it.create_revision,
    });
    if range.limit > 0 {
        answer
            .kvs
            .truncate(usize::try_from(range.limit).expect("few"));
    }
    if range.keys_only {
        answer.kvs.iter_mut().for_each(|it| it.value.clear());
    }
    answer
}

fn range(revision: i64, kvs: Vec<KeyValue>) -> Reply {
    Reply::Range(read(revision, kvs))
}

fn txn(revision: i64, succeeded: bool, reads: Vec<RangeResponse>) -> Reply {
    let responses = reads.into_iter().map(|read| ResponseOp {
        response: Some(Response::Range(read)),
    });
    Reply::Txn(TxnResponse {
        header: Some(header(1, revision)),
        succeeded,
        responses: responses.collect(),
    })
}

/// The entry was made at a revision, behind these.
fn entered(revision: i64, ahead: Vec<KeyValue>) -> Reply {
    txn(revision, true, vec![read(revision, ahead)])
}

fn deleted(count: i64) -> Reply {
    Reply::Deleted(DeleteRangeResponse { deleted: count })
}

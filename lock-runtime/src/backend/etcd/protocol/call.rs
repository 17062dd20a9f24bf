//! Calls to a member and their answers, as values.

use std::time::Duration;

use super::ahead::front;
use super::keys::Span;
use super::messages::{
    Compare, DeleteRangeRequest, DeleteRangeResponse, Expected, LeaseGrantRequest, LeaseRequest,
    LeaseResponse, MemberListRequest, MemberListResponse, PutRequest, RangeRequest, RangeResponse,
    Request, RequestOp, Response, TxnRequest, TxnResponse,
};
use crate::base::clock::Moment;

/// The numbers of the fields that a [`Compare`] compares.
const CREATE: i32 = 1;
const MOD: i32 = 2;

#[derive(Clone, Debug)]
pub(crate) enum Call {
    Txn(TxnRequest),
    Delete(DeleteRangeRequest),
    Range(RangeRequest),
    Grant(LeaseGrantRequest),
    KeepAlive(LeaseRequest),
    /// Which members there are.
    Members(MemberListRequest),
}

#[derive(Debug)]
pub(crate) enum Reply {
    Txn(TxnResponse),
    Deleted(DeleteRangeResponse),
    Range(RangeResponse),
    Lease(LeaseResponse),
    Members(MemberListResponse),
}

/// A call on its way, and the recipient of its answer.
#[derive(Clone, Debug)]
pub(crate) struct Sent<A> {
    pub(crate) to: A,
    pub(crate) call: Call,
    /// A moment before it was sent.
    pub(crate) at: Moment,
    /// How long a member may leave it unanswered.
    pub(crate) call_timeout: Duration,
}

impl Call {
    /// Reads an entry, and those ahead of it, as the member that is asked knows them, or
    /// as a majority does.
    pub(crate) fn look(key: Vec<u8>, ahead: Vec<RangeRequest>, by_majority: bool) -> Self {
        let reads = [own(key)].into_iter().chain(ahead);
        let reads = reads.map(|read| RangeRequest {
            serializable: !by_majority,
            ..read
        });
        Self::Txn(TxnRequest {
            success: reads.map(|read| op(Request::Range(read))).collect(),
            ..TxnRequest::default()
        })
    }

    /// Reads a page of keys, with or without their values.
    pub(crate) fn page(span: Span, limit: i64, keys_only: bool) -> Self {
        Self::Range(RangeRequest {
            limit,
            keys_only,
            ..range(span)
        })
    }

    /// Reads all keys of a span as they were at a revision, which may be compacted.
    pub(crate) fn keys_at(span: Span, revision: i64) -> Self {
        Self::Range(RangeRequest {
            revision,
            keys_only: true,
            ..range(span)
        })
    }

    /// Reads one key.
    pub(crate) fn get(key: Vec<u8>) -> Self {
        Self::Range(own(key))
    }

    pub(crate) fn grant(ttl: Duration) -> Self {
        let ttl = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
        Self::Grant(LeaseGrantRequest { ttl })
    }

    pub(crate) fn keep_alive(lease: i64) -> Self {
        Self::KeepAlive(LeaseRequest { id: lease })
    }

    /// Asks which members there are, and for no less than a majority knows.
    pub(crate) fn members() -> Self {
        Self::Members(MemberListRequest { linearizable: true })
    }

    pub(crate) fn put(key: Vec<u8>, value: Vec<u8>, lease: i64) -> Self {
        Self::Txn(TxnRequest {
            success: vec![put(key, value, lease)],
            ..TxnRequest::default()
        })
    }

    /// Writes the value of an entry again, if it is still the one that was `created`
    /// then; it stays on its lease, or moves to another one.
    pub(crate) fn rewrite(key: Vec<u8>, created: i64, value: Vec<u8>, lease: Option<i64>) -> Self {
        let request = Request::Put(PutRequest {
            key: key.clone(),
            value,
            lease: lease.unwrap_or(0),
            ignore_lease: lease.is_none(),
        });
        Self::Txn(TxnRequest {
            compare: vec![compare(key, Expected::CreateRevision(created))],
            success: vec![op(request)],
            failure: Vec::new(),
        })
    }

    /// Writes the value of an entry again, on its lease, if it was `modified` last then; else
    /// reads it.
    pub(crate) fn rewrite_as_read(key: Vec<u8>, modified: i64, value: Vec<u8>) -> Self {
        let request = Request::Put(PutRequest {
            key: key.clone(),
            value,
            lease: 0,
            ignore_lease: true,
        });
        Self::Txn(TxnRequest {
            compare: vec![compare(key.clone(), Expected::ModRevision(modified))],
            success: vec![op(request)],
            failure: vec![op(Request::Range(own(key)))],
        })
    }

    /// Lets a ticket keep an entry in the queue, on a lease of its own, if the entry was
    /// `modified` last then; else reads the entry. The key of the ticket is `named` after the entry, and
    /// is as old as its value.
    pub(crate) fn issue(
        (ticket, named): (Vec<u8>, Vec<u8>),
        key: Vec<u8>,
        modified: i64,
        value: Vec<u8>,
        lease: i64,
    ) -> Self {
        Self::Txn(TxnRequest {
            compare: vec![compare(key.clone(), Expected::ModRevision(modified))],
            success: vec![put(key.clone(), value, lease), put(ticket, named, lease)],
            failure: vec![op(Request::Range(own(key)))],
        })
    }

    /// Deletes an entry that others may have made, if it is still the one that was `created` then.
    pub(crate) fn delete_entry(key: Vec<u8>, created: i64) -> Self {
        Self::Txn(TxnRequest {
            compare: vec![compare(key.clone(), Expected::CreateRevision(created))],
            success: vec![op(Request::DeleteRange(DeleteRangeRequest { key }))],
            failure: Vec::new(),
        })
    }

    /// Lets a transaction do more where it succeeds.
    pub(crate) fn and(mut self, ops: impl IntoIterator<Item = RequestOp>) -> Self {
        if let Self::Txn(txn) = &mut self {
            txn.success.extend(ops);
        }
        self
    }

    /// Costs the members less than a transaction that deletes one key.
    pub(crate) fn delete(key: Vec<u8>) -> Self {
        Self::Delete(DeleteRangeRequest { key })
    }

    /// Calls that write as one transaction.
    pub(crate) fn all(calls: impl Iterator<Item = Self>) -> Self {
        let requests = calls.filter_map(|call| match call {
            Self::Txn(txn) => Some(Request::Txn(txn)),
            Self::Delete(delete) => Some(Request::DeleteRange(delete)),
            _ => None,
        });
        Self::all_of(requests.map(op))
    }

    /// Lets a member that has no room refuse a transaction whose nested ones put: it looks at no puts but those of the
    /// transaction itself. This one, of `nothing`, is never done, since such a transaction compares nothing.
    pub(crate) fn needing_room(mut self, nothing: Vec<u8>) -> Self {
        if let Self::Txn(txn) = &mut self {
            txn.failure.push(put(nothing, Vec::new(), 0));
        }
        self
    }

    /// The lease on which it makes a key.
    pub(crate) fn lease(&self) -> Option<i64> {
        let Self::Txn(txn) = self else { return None };
        txn.success.iter().find_map(|op| match &op.request {
            Some(Request::Put(put)) => Some(put.lease),
            _ => None,
        })
    }

    /// Carries out all of these as one transaction.
    pub(crate) fn all_of(ops: impl IntoIterator<Item = RequestOp>) -> Self {
        Self::Txn(TxnRequest {
            success: ops.into_iter().collect(),
            ..TxnRequest::default()
        })
    }
}

/// An entry that is to be made, on a lease that is shown by its marker.
pub(crate) struct Entering {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) queue: Span,
    /// The reads of the present entries.
    pub(crate) ahead: Vec<RangeRequest>,
    pub(crate) lease: i64,
    pub(crate) marker: Vec<u8>,
    /// The revision of the marker. A call that was sent before it was written last
    /// comes too late.
    pub(crate) epoch: i64,
    /// Whether it is made in an empty queue alone.
    pub(crate) alone: bool,
}

impl Entering {
    /// Makes the entry, and reads the entries ahead; else reads whether it is there already, the
    /// marker, and the front of the queue.
    pub(crate) fn call(self) -> Call {
        let read = |range| op(Request::Range(range));
        let failure = [
            own(self.key.clone()),
            own(self.marker.clone()),
            front(self.queue.clone()),
        ];
        let mut compares = vec![
            compare(self.key.clone(), Expected::CreateRevision(0)),
            compare(self.marker, Expected::ModRevision(self.epoch)),
        ];
        if self.alone {
            compares.push(Compare {
                range_end: self.queue.end,
                ..compare(self.queue.key, Expected::CreateRevision(0))
            });
        }
        Call::Txn(TxnRequest {
            compare: compares,
            success: self
                .ahead
                .into_iter()
                .map(read)
                .chain([put(self.key, self.value, self.lease)])
                .collect(),
            failure: failure.into_iter().map(read).collect(),
        })
    }
}

/// A ticket's entry that is to become an adopter's, on a lease that is shown by its marker.
pub(crate) struct Adopting {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// When the entry was written last.
    pub(crate) modified: i64,
    pub(crate) ticket: Vec<u8>,
    pub(crate) lease: i64,
    pub(crate) marker: Vec<u8>,
    /// As with an entry that is made.
    pub(crate) epoch: i64,
}

impl Adopting {
    /// Writes the entry, deletes the key of the ticket, and reads the entry; else reads it and
    /// the marker.
    pub(crate) fn call(self) -> Call {
        let read = |key: &Vec<u8>| op(Request::Range(own(key.clone())));
        let delete = DeleteRangeRequest { key: self.ticket };
        Call::Txn(TxnRequest {
            failure: vec![read(&self.key), read(&self.marker)],
            compare: vec![
                compare(self.key.clone(), Expected::ModRevision(self.modified)),
                compare(self.marker, Expected::ModRevision(self.epoch)),
            ],
            success: vec![
                read(&self.key),
                put(self.key, self.value, self.lease),
                op(Request::DeleteRange(delete)),
            ],
        })
    }
}

impl TxnResponse {
    pub(crate) fn revision(&self) -> i64 {
        self.header.as_ref().map_or(0, |header| header.revision)
    }

    /// How many keys it has deleted.
    pub(crate) fn deleted(&self) -> usize {
        let deleted = |response: &Response| match response {
            Response::DeleteRange(it) => usize::try_from(it.deleted).unwrap_or(0),
            Response::Txn(txn) => txn.deleted(),
            _ => 0,
        };
        let responses = self.responses.iter();
        responses
            .filter_map(|it| it.response.as_ref())
            .map(deleted)
            .fold(0, usize::saturating_add)
    }

    /// The answers to the calls of which it was made.
    pub(crate) fn parts(self) -> impl Iterator<Item = Reply> {
        let header = self.header;
        let responses = self.responses.into_iter();
        responses.filter_map(move |it| match it.response? {
            // A part has no header of its own.
            Response::Txn(part) => Some(Reply::Txn(TxnResponse {
                header: header.clone(),
                ..part
            })),
            Response::DeleteRange(part) => Some(Reply::Deleted(part)),
            _ => None,
        })
    }

    /// The results of its reads, in their order.
    pub(crate) fn ranges(self) -> impl Iterator<Item = RangeResponse> {
        let responses = self.responses.into_iter();
        responses.filter_map(|it| match it.response {
            Some(Response::Range(range)) => Some(range),
            _ => None,
        })
    }
}

impl RangeResponse {
    pub(crate) fn revision(&self) -> i64 {
        self.header.as_ref().map_or(0, |header| header.revision)
    }
}

/// Reads one key.
pub(super) fn own(key: Vec<u8>) -> RangeRequest {
    let end = Vec::new();
    range(Span { key, end })
}

pub(super) fn range(span: Span) -> RangeRequest {
    RangeRequest {
        key: span.key,
        range_end: span.end,
        ..RangeRequest::default()
    }
}

pub(super) fn put(key: Vec<u8>, value: Vec<u8>, lease: i64) -> RequestOp {
    op(Request::Put(PutRequest {
        key,
        value,
        lease,
        ignore_lease: false,
    }))
}

pub(super) fn compare(key: Vec<u8>, expected: Expected) -> Compare {
    Compare {
        target: match expected {
            Expected::CreateRevision(_) => CREATE,
            Expected::ModRevision(_) => MOD,
        },
        key,
        expected: Some(expected),
        range_end: Vec::new(),
    }
}

pub(super) fn op(request: Request) -> RequestOp {
    let request = Some(request);
    RequestOp { request }
}

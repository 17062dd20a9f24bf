//! What members of etcd send, for `fuzz/`.

use super::protocol::ahead::{Ahead, Front};
use super::protocol::call::Reply;
use super::protocol::entry;
use super::protocol::keys::Keys;
use super::protocol::messages::{
    AuthenticateResponse, LeaseResponse, MemberListResponse, RangeResponse, StatusResponse,
    TxnResponse, WatchResponse,
};
pub use super::transport::http2;
use super::transport::messages_of;
use crate::types::kind::Kind;

/// Messages of the kind that the first byte chooses, each behind its length, read as the queue of a lock.
pub fn messages(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else {
        return;
    };
    match kind % 7 {
        0 => messages_of::<RangeResponse>(bytes)
            .into_iter()
            .for_each(|it| range(&Keys::new("lock"), it)),
        1 => messages_of::<TxnResponse>(bytes)
            .into_iter()
            .for_each(transaction),
        2 => drop(messages_of::<WatchResponse>(bytes)),
        3 => drop(messages_of::<LeaseResponse>(bytes)),
        4 => drop(messages_of::<MemberListResponse>(bytes)),
        5 => drop(messages_of::<StatusResponse>(bytes)),
        _ => drop(messages_of::<AuthenticateResponse>(bytes)),
    }
}

fn range(keys: &Keys, answer: RangeResponse) {
    let _ = answer.revision();
    let queue = entry::queue(keys, answer.kvs.clone());
    assert!(entry::holders(&queue) <= queue.len());
    for entry in &queue {
        let _ = (entry.holder(), entry.waiter(), entry.asked(), entry.fence());
    }
    let front = Front::read(keys, answer);
    let _ = (front.holder(1), front.waiters(1));
}

fn transaction(answer: TxnResponse) {
    let _ = (answer.revision(), answer.deleted());
    let keys = Keys::new("lock");
    for kind in [Kind::Exclusive, Kind::Read, Kind::Permits(2)] {
        for limited in [false, true] {
            let mut ranges = answer.clone().ranges();
            if let Some(ahead) = Ahead::read(&keys, kind, &mut ranges, limited) {
                let _ = (ahead.is_one(), ahead.position(kind.into()));
            }
        }
    }
    for part in answer.parts() {
        if let Reply::Txn(part) = part {
            let _ = part.deleted();
        }
    }
}

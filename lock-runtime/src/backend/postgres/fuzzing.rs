//! What PostgreSQL servers send, for `fuzz/`.

use std::sync::Arc;
use std::time::Duration;

use super::batch::Batch;
use super::replies::{Replies, standings};
use super::steps::{Call, Sent};
use super::transport::answers_of;
use crate::backend::queue::protocol::call::{Bearer, Company};
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::terms::{LeaseId, Terms};

/// Messages as they come in; each answer is read as that to every kind of call. The first byte is one of the kind.
pub fn answers(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else {
        return;
    };
    for answer in answers_of(bytes) {
        if let Ok(rows) = &answer.result {
            let _ = standings(rows);
        }
        let batch = batch(kind);
        let count = batch.calls().len();
        assert_eq!(Replies::read(batch, answer).all.len(), count);
    }
}

fn batch(kind: u8) -> Batch {
    let acquire = || Call::Acquire {
        bearer: bearer(),
        position: None,
        company: Company::Unsaid,
    };
    let renew = || Call::Renew {
        bearer: bearer(),
        note: None,
    };
    match kind % 6 {
        0 => Batch::One(sent(acquire())),
        1 => Batch::One(sent(Call::Ask(vec![bearer(), bearer()]))),
        2 => Batch::One(sent(renew())),
        3 => Batch::One(sent(Call::Leave(bearer()))),
        4 => Batch::Renewals(vec![sent(renew()), sent(renew())]),
        _ => Batch::Many(vec![sent(acquire()), sent(acquire())]),
    }
}

fn sent(call: Call) -> Sent {
    Sent::new(call, Moment::from_nanos(1))
}

fn bearer() -> Bearer {
    let token = Token::parse(&"7".repeat(32)).expect("a token");
    let terms = Terms::of(LeaseId(1), "k", Duration::from_secs(10));
    Bearer::new(token, Arc::new(terms))
}

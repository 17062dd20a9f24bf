//! Reads what servers may send as answers to every kind of call, for `fuzz/`.

use std::sync::Arc;
use std::time::Duration;

use super::batch::Batch;
use super::replies::{Replies, standings};
use super::row::Row;
use super::steps::{Call, Sent};
use crate::backend::queue::protocol::call::{Bearer, Company};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::terms::{LeaseId, Terms};

/// Reads an answer to calls of this kind.
pub(crate) fn read(kind: u8, rows: Result<Vec<Row>, Trouble>, doubt: Option<Cause>) {
    if let Ok(rows) = &rows {
        let _ = standings(rows);
    }
    let batch = batch(kind);
    let count = batch.calls().len();
    assert_eq!(Replies::read(batch, rows, doubt).all.len(), count);
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

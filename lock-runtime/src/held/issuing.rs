//! Turns a guard into a ticket, which is taken back if it reaches nobody.

use std::sync::Arc;
use std::time::Duration;

use crate::held::home::Home;
use crate::held::lease::Lease;
use crate::types::error::LockError;
use crate::types::fence::FencingToken;
use crate::types::terms::{Terms, Wait};
use crate::types::ticket::{LONGEST, SHORTEST, Ticket};
use crate::types::ticket_id::TicketId;

/// Lets a ticket take the place of a lease that stands alone.
pub(super) async fn issue(lease: &Lease, time: Duration) -> Result<Ticket, LockError> {
    if !(SHORTEST..=LONGEST).contains(&time) {
        return Err(LockError::invalid(
            "ticket",
            "its time must be 100ms to 24h",
        ));
    }
    let id = TicketId::new()
        .map_err(|error| LockError::unavailable_at(&"the operating system".into(), error))?;
    let answer = lease.issue(id, time)?;
    let mut unclaimed = Unclaimed {
        home: lease.home(),
        terms: Some(adoption(&lease.terms, id, time)),
    };
    let was_held = answer.await?;
    unclaimed.terms = None;
    if !was_held {
        return Err(LockError::Lost {
            key: lease.terms.key.clone(),
            fencing_token: FencingToken::new(lease.fence),
        });
    }
    Ok(Ticket {
        key: lease.terms.key.clone(),
        kind: lease.terms.kind,
        id,
    })
}

/// Adopts the ticket as long as it may be there.
fn adoption(terms: &Terms, id: TicketId, time: Duration) -> Arc<Terms> {
    Arc::new(Terms {
        adopts: Some(Box::new(id)),
        wait: Wait::AtMost(time),
        ..terms.clone()
    })
}

/// A ticket that may have been written, and that its caller has not got.
struct Unclaimed<'l> {
    home: &'l dyn Home,
    terms: Option<Arc<Terms>>,
}

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        if let Some(terms) = self.terms.take() {
            self.home.take_back(terms);
        }
    }
}

//! Turns the guard of a writer into that of a reader.

use std::sync::Arc;

use crate::held::lease::Lease;
use crate::types::error::LockError;
use crate::types::fence::FencingToken;
use crate::types::kind::Kind;

/// Lets a lease that stands alone go on as that of a reader. The driver keeps the reader's lease from
/// the request on; whoever drops this future still has the writer's, by which it is released.
pub(super) async fn downgrade(lease: &Lease) -> Result<Arc<Lease>, LockError> {
    if lease.terms.kind != Kind::Exclusive {
        return Err(LockError::invalid(
            "downgrade",
            format_args!(
                "the lock is held in the kind `{}`, and only a writer can go on as a reader",
                lease.terms.kind
            ),
        ));
    }
    let was_held = lease.downgrade()?.await?;
    let reader = was_held.then(|| lease.give_way()).flatten();
    reader.ok_or_else(|| LockError::Lost {
        key: lease.terms.key.clone(),
        fencing_token: FencingToken::new(lease.fence),
    })
}

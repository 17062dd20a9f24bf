//! Under which locks the code runs that is being polled, so that a task that asks
//! for a lock of its own is told so instead of waiting for itself.

use std::cell::RefCell;
use std::sync::Arc;

use crate::guard::LockGuard;
use crate::key::LockKey;
use crate::lease::Lease;
use crate::manager::Shared;
use crate::terms::Kind;

thread_local! {
    static LEASES: RefCell<Vec<Arc<Lease>>> = const { RefCell::new(Vec::new()) };
}

/// The body of `lease` is polled until the value is dropped, also by a panic.
pub(crate) fn enter(lease: &Arc<Lease>) -> Entered {
    LEASES.with_borrow_mut(|leases| leases.push(Arc::clone(lease)));
    Entered
}

pub(crate) struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        let left = LEASES.with_borrow_mut(Vec::pop);
        // Dropped when the list is free again, as it may run other drops.
        drop(left);
    }
}

/// The lock under which the code runs that is being polled, the innermost of
/// several: what a function deep below a locked one needs to send the fencing
/// token along.
///
/// It is another guard for the same lease: dropping or releasing it lets go of
/// nothing. `None` outside [`hold`](LockGuard::hold), annotated functions and
/// [`run`](crate::LockRequest::run), and in tasks that were spawned from there,
/// unless the body itself polls them, as a local executor inside it does.
pub fn current() -> Option<LockGuard> {
    LEASES.with_borrow(|leases| leases.last().map(LockGuard::joined))
}

/// What the code that is being polled has of the locks that it asks for.
pub(crate) enum Standing {
    Free,
    /// All of them, in a kind that allows what is asked for.
    Covered(Arc<Lease>),
    /// This one, for which it would wait for ever.
    InTheWay(LockKey),
}

pub(crate) fn standing<'a>(
    shared: &Shared,
    keys: &(impl Iterator<Item = &'a LockKey> + Clone),
    kind: Kind,
) -> Standing {
    LEASES.with_borrow(|leases| {
        let mine = |lease: &&Arc<Lease>| lease.belongs_to(shared) && lease.is_held();
        let mine = leases.iter().rev().filter(mine);
        for lease in mine.clone() {
            if lease.terms.kind.covers(kind) && keys.clone().all(|key| lease.locks(key)) {
                return Standing::Covered(Arc::clone(lease));
            }
        }
        let in_the_way = |key: &&LockKey| mine.clone().any(|lease| lease.locks(key));
        keys.clone()
            .find(in_the_way)
            .map_or(Standing::Free, |key| Standing::InTheWay(key.clone()))
    })
}

//! Under which locks the code runs that is being polled, so that a task that asks
//! for a lock of its own is told so instead of waiting for itself.

use std::cell::RefCell;
use std::sync::Arc;

use crate::key::LockKey;
use crate::lease::Lease;
use crate::manager::Shared;

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

/// Whether the code that is being polled runs under this lock of this manager.
pub(crate) fn holds(shared: &Shared, key: &LockKey) -> bool {
    LEASES.with_borrow(|leases| {
        let same = |lease: &Arc<Lease>| lease.terms.key == *key && lease.belongs_to(shared);
        leases.iter().any(|lease| same(lease) && lease.is_held())
    })
}

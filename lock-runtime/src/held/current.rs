//! Under which locks the code runs that is being polled, so that a task that asks
//! for a lock of its own is told so instead of waiting for itself.

use std::cell::RefCell;
use std::sync::Arc;

use crate::held::home::Home;
use crate::held::lease::Lease;
use crate::vocabulary::key::LockKey;
use crate::vocabulary::kind::Kind;

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

/// The lease of the innermost lock under which the code runs that is being polled.
pub(crate) fn innermost() -> Option<Arc<Lease>> {
    LEASES.with_borrow(|leases| leases.last().cloned())
}

/// What the code that is being polled has of the locks that it asks for.
pub(crate) enum Coverage {
    /// None of them.
    Free,
    /// All of them, in a kind that allows what is asked for.
    Covered(Arc<Lease>),
    /// This one, for which it would wait for ever.
    InTheWay(LockKey),
}

pub(crate) fn coverage<'a>(
    home: &dyn Home,
    keys: &(impl Iterator<Item = &'a LockKey> + Clone),
    kind: Kind,
) -> Coverage {
    LEASES.with_borrow(|leases| {
        let mine = |lease: &&Arc<Lease>| lease.belongs_to(home) && lease.is_held();
        let mine = leases.iter().rev().filter(mine);
        for lease in mine.clone() {
            if lease.terms.kind.covers(kind) && keys.clone().all(|key| lease.locks(key)) {
                return Coverage::Covered(Arc::clone(lease));
            }
        }
        let in_the_way = |key: &&LockKey| mine.clone().any(|lease| lease.locks(key));
        keys.clone()
            .find(in_the_way)
            .map_or(Coverage::Free, |key| Coverage::InTheWay(key.clone()))
    })
}

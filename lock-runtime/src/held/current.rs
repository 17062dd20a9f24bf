//! The locks under which the current code runs, so that work that asks for its own
//! lock gets an error instead of waiting for itself.

use std::cell::RefCell;
use std::sync::Arc;

use crate::held::home::Home;
use crate::held::lease::Lease;
use crate::types::enclosing::{Enclosing, MOST_ENCLOSING};
use crate::types::key::LockKey;
use crate::types::terms::Terms;

thread_local! {
    static LEASES: RefCell<Vec<Arc<Lease>>> = const { RefCell::new(Vec::new()) };
}

/// While the value lives, the body of `lease` is being polled; a panic drops it too.
pub(crate) fn enter(lease: &Arc<Lease>) -> Entered {
    LEASES.with_borrow_mut(|leases| leases.push(Arc::clone(lease)));
    Entered
}

pub(crate) struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        let left = LEASES.with_borrow_mut(Vec::pop);
        // Dropped after the list is free again, since it may run other drops.
        drop(left);
    }
}

/// The lease of the innermost lock under which the current code runs.
pub(crate) fn innermost() -> Option<Arc<Lease>> {
    LEASES.with_borrow(|leases| leases.last().cloned())
}

/// The locks of this manager under which the current code runs, the innermost first.
pub(crate) fn enclosing(home: &dyn Home) -> Box<[Enclosing]> {
    LEASES.with_borrow(|leases| {
        let mut locks = Vec::new();
        let mine = leases.iter().rev();
        let mine = mine.filter(|lease| lease.belongs_to(home) && lease.is_held());
        for lock in mine.flat_map(|lease| lease.enclosing()) {
            // A reentrant call runs under the same lease again.
            if locks.len() < MOST_ENCLOSING && !locks.contains(&lock) {
                locks.push(lock);
            }
        }
        locks.into()
    })
}

/// Notes that the current code acts under a lease whose end does not stop it. Called before it
/// checks whether the lock is held. A body of this very lease is stopped with it, or has been
/// noted.
pub(crate) fn acts_under(lease: &Arc<Lease>) {
    let is_body =
        |leases: &RefCell<Vec<_>>| leases.borrow().iter().any(|it| Arc::ptr_eq(it, lease));
    if !LEASES.try_with(is_body).unwrap_or_default() {
        lease.unstopped();
    }
}

/// Which of the requested locks the current code already holds.
pub(crate) enum Coverage {
    /// None of them.
    Free,
    /// All of them, in a kind that includes the requested one.
    Covered(Arc<Lease>),
    /// This one, but not all: it would wait for itself.
    InTheWay(LockKey),
}

pub(crate) fn coverage<'a>(
    home: &dyn Home,
    keys: &(impl Iterator<Item = &'a LockKey> + Clone),
    asked: &Terms,
) -> Coverage {
    LEASES.with_borrow(|leases| {
        let mine = |lease: &&Arc<Lease>| lease.belongs_to(home) && lease.is_held();
        let mine = leases.iter().rev().filter(mine);
        for lease in mine.clone() {
            if lease.terms.covers(asked) && keys.clone().all(|key| lease.locks(key)) {
                return Coverage::Covered(Arc::clone(lease));
            }
        }
        let in_the_way = |key: &&LockKey| mine.clone().any(|lease| lease.locks(key));
        keys.clone()
            .find(in_the_way)
            .map_or(Coverage::Free, |key| Coverage::InTheWay(key.clone()))
    })
}

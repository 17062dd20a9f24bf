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

/// Reads the list, which is gone in some destructors of a thread that ends.
fn look<T>(read: impl FnOnce(&[Arc<Lease>]) -> T) -> Option<T> {
    LEASES.try_with(|leases| read(&leases.borrow())).ok()
}

fn change<T>(change: impl FnOnce(&mut Vec<Arc<Lease>>) -> T) -> Option<T> {
    let changed = LEASES.try_with(|leases| change(&mut leases.borrow_mut()));
    changed.ok()
}

/// While the value lives, the body of `lease` is being polled; a panic drops it too.
pub(crate) fn enter(lease: &Arc<Lease>) -> Entered {
    change(|leases| leases.push(Arc::clone(lease)));
    Entered
}

pub(crate) struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        let left = change(Vec::pop);
        // Dropped after the list is free again, since it may run other drops.
        drop(left);
    }
}

/// The lease of the innermost lock under which the current code runs.
pub(crate) fn innermost() -> Option<Arc<Lease>> {
    look(|leases| leases.last().cloned()).flatten()
}

/// The locks of this manager under which the current code runs, the innermost first.
pub(crate) fn enclosing(home: &dyn Home) -> Box<[Enclosing]> {
    let locks = look(|leases| {
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
    });
    locks.unwrap_or_default()
}

/// Notes that the current code acts under a lease whose end does not stop it. Called before it
/// checks whether the lock is held. A body of this very lease is stopped with it, or has been
/// noted.
pub(crate) fn acts_under(lease: &Arc<Lease>) {
    let is_body = look(|leases| leases.iter().any(|it| Arc::ptr_eq(it, lease)));
    if !is_body.unwrap_or_default() {
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
    let covered = look(|leases| {
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
    });
    covered.unwrap_or(Coverage::Free)
}

//! Whether a thread is in the middle of work for others: a waker that is called there is, too.

use std::cell::Cell;

thread_local! {
    static AT_WORK: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread works for others.
pub(super) fn is_at_work() -> bool {
    AT_WORK.try_with(Cell::get).unwrap_or_default()
}

/// This thread works for others until this is dropped.
pub(super) struct AtWork {
    was_at_work: bool,
}

impl AtWork {
    pub(super) fn begin() -> Self {
        let was_at_work = AT_WORK.try_with(|it| it.replace(true));
        Self {
            was_at_work: was_at_work.unwrap_or_default(),
        }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let _ = AT_WORK.try_with(|it| it.set(self.was_at_work));
    }
}

//! Masters that are replaced, and slots that move, one after the other while locks are taken: see `make failovers`.

mod masters;
mod slots;

pub use masters::{Replaced, replace_masters};
pub use slots::{Moved, move_slots};

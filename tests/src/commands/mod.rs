//! What the worker does for single tests.

mod configuration;
mod holder;
mod load;
mod locker;
mod paused_process;

pub(crate) use configuration::{ends_at_once, from_environment, installed_twice, unconfigured};
pub(crate) use holder::{daily_job, holder};
pub(crate) use load::{sections, turns};
pub(crate) use locker::locker;
pub(crate) use paused_process::paused_process;

//! The texts of the scripts: the one list of the files that each is joined from.
//! The library and its tests read it, so that both run the same scripts.
//!
//! The fast path comes first in a script: what most calls need returns from there.

pub(crate) const ACQUIRE: &str = concat!(
    include_str!("limits.lua"),
    include_str!("acquire_fast.lua"),
    include_str!("dispatch.lua"),
    include_str!("acquire.lua"),
);
pub(crate) const ASK: &str = concat!(
    include_str!("limits.lua"),
    include_str!("dispatch.lua"),
    include_str!("ask.lua"),
);
pub(crate) const RELEASE: &str = concat!(
    include_str!("limits.lua"),
    include_str!("release_fast.lua"),
    include_str!("dispatch.lua"),
    include_str!("release.lua"),
);
pub(crate) const RENEW: &str = concat!(
    include_str!("limits.lua"),
    include_str!("renew_fast.lua"),
    include_str!("dispatch.lua"),
    include_str!("renew.lua"),
);
pub(crate) const STATUS: &str = concat!(
    include_str!("limits.lua"),
    include_str!("dispatch.lua"),
    include_str!("status.lua"),
);
pub(crate) const FORCE: &str = concat!(
    include_str!("limits.lua"),
    include_str!("dispatch.lua"),
    include_str!("force.lua"),
);
pub(crate) const OPEN: &str = include_str!("open.lua");
pub(crate) const MANY: &str = concat!(
    include_str!("limits.lua"),
    "local function acquire(KEYS, ARGV)\n",
    include_str!("acquire_fast.lua"),
    include_str!("dispatch.lua"),
    include_str!("acquire.lua"),
    "end\nlocal function release(KEYS, ARGV)\n",
    include_str!("release_fast.lua"),
    include_str!("dispatch.lua"),
    include_str!("release.lua"),
    "end\n",
    include_str!("many.lua"),
);

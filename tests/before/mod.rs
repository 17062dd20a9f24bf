//! The texts of the scripts that a lock needs as they were joined before there were chains.

macro_rules! script {
    ($general:literal) => {
        concat!(
            include_str!("limits.lua"),
            include_str!("dispatch.lua"),
            include_str!($general),
        )
    };
    // What most calls need returns before the functions of `general` are made. It has
    // the limits once more, since every local of the fast path that it used would slow
    // that down.
    ($fast:literal, or $general:literal) => {
        concat!(
            "local function general(...)\n",
            script!($general),
            "end\n",
            include_str!("limits.lua"),
            include_str!($fast),
        )
    };
}

/// A script that is called by itself.
macro_rules! whole {
    ($script:expr) => {
        concat!(include_str!("layout.lua"), $script)
    };
}

pub(crate) const ACQUIRE: &str = whole!(script!("acquire_fast.lua", or "acquire.lua"));
pub(crate) const ASK: &str = whole!(script!("ask.lua"));
pub(crate) const RELEASE: &str = whole!(script!("release_fast.lua", or "release.lua"));
pub(crate) const RENEW: &str = whole!(script!("renew_fast.lua", or "renew.lua"));

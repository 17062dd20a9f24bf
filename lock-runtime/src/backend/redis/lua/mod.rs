//! The texts of the scripts: the one list of the files that each is joined from.
//! The library and its tests read it, so that both run the same scripts.

macro_rules! script {
    ($general:literal) => {
        concat!(
            include_str!("limits.lua"),
            include_str!("chain.lua"),
            include_str!("dispatch.lua"),
            include_str!($general),
        )
    };
    // What most calls need returns before the functions of `general` are made. It has
    // the limits once more, since every local of the fast path that it used would slow
    // that down.
    ($($fast:literal),+, or $general:literal) => {
        concat!(
            "local function general(...)\n",
            script!($general),
            "end\n",
            include_str!("limits.lua"),
            $(include_str!($fast)),+
        )
    };
}

macro_rules! acquire {
    () => {
        script!("acquire_fast.lua", or "acquire.lua")
    };
}

macro_rules! release {
    () => {
        script!("chain.lua", "release_fast.lua", or "release.lua")
    };
}

macro_rules! many {
    () => {
        concat!(
            "local function acquire(KEYS, ARGV)\n",
            acquire!(),
            "end\nlocal function release(KEYS, ARGV)\n",
            release!(),
            "end\n",
            include_str!("limits.lua"),
            include_str!("many.lua"),
        )
    };
}

/// A script that is called by itself.
macro_rules! whole {
    ($script:expr) => {
        concat!(include_str!("layout.lua"), $script)
    };
}

/// A script of the timestamp protocol.
macro_rules! stamps {
    ($script:literal) => {
        concat!(
            include_str!("stamps/shared.lua"),
            include_str!(concat!("stamps/", $script))
        )
    };
}

pub(crate) const ACQUIRE: &str = whole!(acquire!());
pub(crate) const ASK: &str = whole!(script!("ask.lua"));
pub(crate) const RELEASE: &str = whole!(release!());
pub(crate) const RENEW: &str = whole!(script!("renew_fast.lua", or "renew.lua"));
pub(crate) const RAISE: &str = whole!(script!("raise.lua"));
pub(crate) const STATUS: &str = whole!(script!("status.lua"));
pub(crate) const OVERVIEW: &str = include_str!("overview.lua");
pub(crate) const RIGHTS: &str = concat!(include_str!("try.lua"), include_str!("rights.lua"));
pub(crate) const FORCE: &str = whole!(script!("force.lua"));
pub(crate) const OPEN: &str = include_str!("open.lua");
pub(crate) const QUARANTINE: &str = include_str!("quarantine.lua");
pub(crate) const MANY: &str = concat!("local AT, count = ''\n", many!());
pub(crate) const MANY_DECLARED: &str = whole!(many!());

pub(crate) const STAMPS_ACQUIRE: &str = stamps!("acquire.lua");
pub(crate) const STAMPS_ASK: &str = stamps!("ask.lua");
pub(crate) const STAMPS_RELEASE: &str = stamps!("release.lua");
pub(crate) const STAMPS_RENEW: &str = stamps!("renew.lua");
pub(crate) const STAMPS_STATUS: &str = stamps!("status.lua");
pub(crate) const STAMPS_FORCE: &str = stamps!("force.lua");
pub(crate) const STAMPS_RIGHTS: &str =
    concat!(include_str!("try.lua"), include_str!("stamps/rights.lua"));

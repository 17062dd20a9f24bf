//! The texts of the scripts: the one list of the files that each is joined from.
//! The library and its tests read it, so that both run the same scripts. `local` names for
//! `KEYS` and `ARGV` made no script faster.

/// The text of a script. Files that end in `_free` and `_fast` return what most calls need
/// before any function is made that those do not need.
macro_rules! join {
    ($($file:literal),+) => {
        concat!($(include_str!($file)),+)
    };
}

macro_rules! general {
    ($script:literal) => {
        join!(
            "limits.lua",
            "marks.lua",
            "chain.lua",
            "functions.lua",
            $script
        )
    };
}

macro_rules! acquire {
    () => {
        join!(
            "limits.lua",
            "acquire_free.lua",
            "marks.lua",
            "enqueue.lua",
            "acquire_fast.lua",
            "chain.lua",
            "functions.lua",
            "acquire.lua"
        )
    };
}

macro_rules! release {
    () => {
        join!(
            "limits.lua",
            "release_free.lua",
            "marks.lua",
            "chain.lua",
            "release_fast.lua",
            "functions.lua",
            "release.lua"
        )
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
            join!(
                "limits.lua",
                "marks.lua",
                "enqueue.lua",
                "note.lua",
                "many.lua"
            ),
        )
    };
}

/// A script that also keeps the history of its lock: of as many grants, each with its end, as
/// the last of ARGV says.
macro_rules! logged {
    ($script:expr) => {
        concat!(
            "local KEEP = 2 * table.remove(ARGV)\n",
            include_str!("layout.lua"),
            join!(
                "limits.lua",
                "marks.lua",
                "enqueue.lua",
                "chain.lua",
                "functions.lua",
                "history.lua"
            ),
            $script
        )
    };
}

/// A script that is called by itself.
macro_rules! whole {
    ($script:expr) => {
        concat!(include_str!("layout.lua"), $script)
    };
}

/// A script of the setnx protocol.
macro_rules! setnx {
    ($script:literal) => {
        join!("setnx/functions.lua", $script)
    };
}

pub(crate) const ACQUIRE: &str = whole!(acquire!());
pub(crate) const ASK: &str = whole!(general!("ask.lua"));
pub(crate) const RELEASE: &str = whole!(release!());
pub(crate) const RENEW: &str = whole!(concat!(
    join!("note.lua", "renew_fast.lua"),
    general!("renew.lua")
));
pub(crate) const RAISE: &str = whole!(general!("raise.lua"));
pub(crate) const ISSUE: &str = whole!(general!("issue.lua"));
pub(crate) const DOWNGRADE: &str = whole!(general!("downgrade.lua"));
pub(crate) const ADOPT: &str = whole!(general!("adopt.lua"));
pub(crate) const STATUS: &str = whole!(join!(
    "limits.lua",
    "marks.lua",
    "chain.lua",
    "functions.lua",
    "noted.lua",
    "status.lua"
));
pub(crate) const OVERVIEW: &str = join!("noted.lua", "overview.lua");
pub(crate) const RIGHTS: &str = join!("try.lua", "rights.lua");
pub(crate) const FORCE: &str = concat!(
    "local KEEP\n",
    include_str!("layout.lua"),
    join!(
        "limits.lua",
        "marks.lua",
        "chain.lua",
        "functions.lua",
        "history.lua",
        "force.lua"
    )
);
pub(crate) const LOG: &str = whole!(general!("log.lua"));
pub(crate) const OPEN: &str = include_str!("open.lua");
pub(crate) const QUARANTINE: &str = include_str!("quarantine.lua");
pub(crate) const MANY: &str = concat!("local AT, count = ''\n", many!());
pub(crate) const MANY_DECLARED: &str = whole!(many!());

pub(crate) const LOGGED_ACQUIRE: &str = logged!(include_str!("acquire.lua"));
pub(crate) const LOGGED_ASK: &str = logged!(include_str!("ask.lua"));
pub(crate) const LOGGED_DOWNGRADE: &str = logged!(include_str!("downgrade.lua"));
pub(crate) const LOGGED_RELEASE: &str = logged!(concat!(
    "local function release(KEYS, ARGV)\n\
     local owner, head, position, deaf = redis.call('GET', OWNER)\n",
    include_str!("release.lua"),
    "end\n",
    include_str!("release_logged.lua")
));
pub(crate) const LOGGED_ISSUE: &str = logged!(concat!(
    "local function issue(KEYS, ARGV)\n",
    include_str!("issue.lua"),
    "end\n",
    include_str!("issue_logged.lua")
));
pub(crate) const LOGGED_ADOPT: &str = logged!(concat!(
    "local function adopt(KEYS, ARGV)\n",
    include_str!("adopt.lua"),
    "end\n",
    include_str!("adopt_logged.lua")
));
pub(crate) const LOGGED_RIGHTS: &str = join!("try.lua", "log_rights.lua", "rights.lua");

pub(crate) const SETNX_ACQUIRE: &str = setnx!("setnx/acquire.lua");
pub(crate) const SETNX_ASK: &str = setnx!("setnx/ask.lua");
pub(crate) const SETNX_RELEASE: &str = setnx!("setnx/release.lua");
pub(crate) const SETNX_RENEW: &str = setnx!("setnx/renew.lua");
pub(crate) const SETNX_STATUS: &str = setnx!("setnx/status.lua");
pub(crate) const SETNX_FORCE: &str = setnx!("setnx/force.lua");
pub(crate) const SETNX_RIGHTS: &str = join!("try.lua", "setnx/rights.lua");

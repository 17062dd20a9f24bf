//! The Lua scripts, one file each.

use once_cell::sync::Lazy;
use redis::Cmd;

/// A script and how to call it.
#[derive(Debug)]
pub(crate) struct Script {
    text: &'static str,
    hash: Lazy<String>,
}

macro_rules! script {
    ($name:ident, $($file:literal),+) => {
        pub(crate) static $name: Script = Script {
            text: concat!($(include_str!($file)),+),
            hash: Lazy::new(|| hash($name.text)),
        };
    };
}

// What most calls need comes first in a script: it returns from there.
script!(
    ACQUIRE,
    "../lua/limits.lua",
    "../lua/acquire_fast.lua",
    "../lua/dispatch.lua",
    "../lua/acquire.lua"
);
script!(
    ASK,
    "../lua/limits.lua",
    "../lua/dispatch.lua",
    "../lua/ask.lua"
);
script!(
    RELEASE,
    "../lua/limits.lua",
    "../lua/release_fast.lua",
    "../lua/dispatch.lua",
    "../lua/release.lua"
);
script!(
    RENEW,
    "../lua/limits.lua",
    "../lua/renew_fast.lua",
    "../lua/dispatch.lua",
    "../lua/renew.lua"
);
script!(
    STATUS,
    "../lua/limits.lua",
    "../lua/dispatch.lua",
    "../lua/status.lua"
);
script!(
    FORCE,
    "../lua/limits.lua",
    "../lua/dispatch.lua",
    "../lua/force.lua"
);
script!(OPEN, "../lua/open.lua");

pub(crate) static MANY: Script = Script {
    text: concat!(
        include_str!("../lua/limits.lua"),
        "local function acquire(KEYS, ARGV)\n",
        include_str!("../lua/acquire_fast.lua"),
        include_str!("../lua/dispatch.lua"),
        include_str!("../lua/acquire.lua"),
        "end\nlocal function release(KEYS, ARGV)\n",
        include_str!("../lua/release_fast.lua"),
        include_str!("../lua/dispatch.lua"),
        include_str!("../lua/release.lua"),
        "end\n",
        include_str!("../lua/many.lua"),
    ),
    hash: Lazy::new(|| hash(MANY.text)),
};

/// Those that are loaded when a connection opens.
pub(crate) static LOADED: [&Script; 5] = [&ACQUIRE, &ASK, &RELEASE, &RENEW, &MANY];

impl Script {
    /// The beginning of a call: by its hash, or with its text, which makes the
    /// server remember it.
    pub(crate) fn call(&self, by_text: bool) -> Cmd {
        if by_text {
            let mut cmd = redis::cmd("EVAL");
            cmd.arg(self.text);
            cmd
        } else {
            let mut cmd = Cmd::with_capacity(14, 512);
            cmd.arg("EVALSHA").arg(self.hash.as_str());
            cmd
        }
    }

    /// `SCRIPT LOAD`.
    pub(crate) fn load(&self) -> Cmd {
        let mut cmd = redis::cmd("SCRIPT");
        cmd.arg("LOAD").arg(self.text);
        cmd
    }
}

fn hash(text: &str) -> String {
    redis::Script::new(text).get_hash().to_owned()
}

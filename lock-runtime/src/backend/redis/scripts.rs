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
        pub(super) static $name: Script = Script {
            text: concat!($(include_str!($file)),+),
            hash: Lazy::new(|| hash($name.text)),
        };
    };
}

// What most calls need comes first in a script: it returns from there.
script!(
    ACQUIRE,
    "limits.lua",
    "acquire_common.lua",
    "dispatch.lua",
    "acquire.lua"
);
script!(ASK, "limits.lua", "dispatch.lua", "ask.lua");
script!(
    RELEASE,
    "limits.lua",
    "release_common.lua",
    "dispatch.lua",
    "release.lua"
);
script!(
    RENEW,
    "limits.lua",
    "renew_common.lua",
    "dispatch.lua",
    "renew.lua"
);
script!(STATUS, "limits.lua", "dispatch.lua", "status.lua");
script!(FORCE, "limits.lua", "dispatch.lua", "force.lua");
script!(OPEN, "open.lua");

pub(super) static MANY: Script = Script {
    text: concat!(
        include_str!("limits.lua"),
        "local function acquire(KEYS, ARGV)\n",
        include_str!("acquire_common.lua"),
        include_str!("dispatch.lua"),
        include_str!("acquire.lua"),
        "end\nlocal function release(KEYS, ARGV)\n",
        include_str!("release_common.lua"),
        include_str!("dispatch.lua"),
        include_str!("release.lua"),
        "end\n",
        include_str!("many.lua"),
    ),
    hash: Lazy::new(|| hash(MANY.text)),
};

/// Those that are loaded when a connection opens.
pub(super) static LOADED: [&Script; 5] = [&ACQUIRE, &ASK, &RELEASE, &RENEW, &MANY];

impl Script {
    /// The beginning of a call: by its hash, or with its text, which makes the
    /// server remember it.
    pub(super) fn call(&self, by_text: bool) -> Cmd {
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
    pub(super) fn load(&self) -> Cmd {
        let mut cmd = redis::cmd("SCRIPT");
        cmd.arg("LOAD").arg(self.text);
        cmd
    }
}

fn hash(text: &str) -> String {
    redis::Script::new(text).get_hash().to_owned()
}

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
script!(ACQUIRE, "acquire_free.lua", "dispatch.lua", "acquire.lua");
script!(ASK, "dispatch.lua", "ask.lua");
script!(RELEASE, "release_alone.lua", "dispatch.lua", "release.lua");
script!(RENEW, "renew_alone.lua", "dispatch.lua", "renew.lua");
script!(STATUS, "dispatch.lua", "status.lua");
script!(FORCE, "dispatch.lua", "force.lua");
script!(OPEN, "open.lua");

/// Those that are loaded when a connection opens.
pub(super) static LOADED: [&Script; 4] = [&ACQUIRE, &ASK, &RELEASE, &RENEW];

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

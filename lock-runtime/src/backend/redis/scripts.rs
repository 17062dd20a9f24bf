//! The Lua scripts, one file each.

use once_cell::sync::Lazy;
use redis::Cmd;

/// A script and how to call it.
#[derive(Debug)]
pub(crate) struct Script {
    text: &'static str,
    hash: Lazy<String>,
}

pub(super) static ACQUIRE: Script = Script {
    text: concat!(include_str!("dispatch.lua"), include_str!("acquire.lua")),
    hash: Lazy::new(|| hash(ACQUIRE.text)),
};
pub(super) static ASK: Script = Script {
    text: concat!(include_str!("dispatch.lua"), include_str!("ask.lua")),
    hash: Lazy::new(|| hash(ASK.text)),
};
pub(super) static RELEASE: Script = Script {
    text: concat!(include_str!("dispatch.lua"), include_str!("release.lua")),
    hash: Lazy::new(|| hash(RELEASE.text)),
};
pub(super) static RENEW: Script = Script {
    text: include_str!("renew.lua"),
    hash: Lazy::new(|| hash(RENEW.text)),
};
pub(super) static OPEN: Script = Script {
    text: include_str!("open.lua"),
    hash: Lazy::new(|| hash(OPEN.text)),
};

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
            let mut cmd = redis::cmd("EVALSHA");
            cmd.arg(self.hash.as_str());
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

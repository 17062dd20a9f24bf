//! The Lua scripts, and how they are called.

use once_cell::sync::Lazy;
use redis::Cmd;

use crate::backend::redis::lua;

/// A script and how to call it.
#[derive(Debug)]
pub(crate) struct Script {
    text: &'static str,
    hash: Lazy<String>,
}

macro_rules! scripts {
    ($($name:ident),+) => {
        $(pub(crate) static $name: Script = Script {
            text: lua::$name,
            hash: Lazy::new(|| hash(lua::$name)),
        };)+
    };
}

scripts!(
    ACQUIRE,
    ASK,
    RELEASE,
    RENEW,
    RAISE,
    ISSUE,
    DOWNGRADE,
    ADOPT,
    MANY,
    MANY_DECLARED,
    STATUS,
    OVERVIEW,
    RIGHTS,
    FORCE,
    OPEN,
    QUARANTINE,
    LOG,
    LOGGED_ACQUIRE,
    LOGGED_ASK,
    LOGGED_RELEASE,
    LOGGED_ISSUE,
    LOGGED_DOWNGRADE,
    LOGGED_ADOPT,
    LOGGED_RIGHTS,
    SETNX_ACQUIRE,
    SETNX_ASK,
    SETNX_RELEASE,
    SETNX_RENEW,
    SETNX_STATUS,
    SETNX_FORCE,
    SETNX_RIGHTS
);

static ALL: [&Script; 31] = [
    &ACQUIRE,
    &ASK,
    &RELEASE,
    &RENEW,
    &RAISE,
    &ISSUE,
    &DOWNGRADE,
    &ADOPT,
    &MANY,
    &MANY_DECLARED,
    &STATUS,
    &OVERVIEW,
    &RIGHTS,
    &FORCE,
    &OPEN,
    &QUARANTINE,
    &LOG,
    &LOGGED_ACQUIRE,
    &LOGGED_ASK,
    &LOGGED_RELEASE,
    &LOGGED_ISSUE,
    &LOGGED_DOWNGRADE,
    &LOGGED_ADOPT,
    &LOGGED_RIGHTS,
    &SETNX_ACQUIRE,
    &SETNX_ASK,
    &SETNX_RELEASE,
    &SETNX_RENEW,
    &SETNX_STATUS,
    &SETNX_FORCE,
    &SETNX_RIGHTS,
];

/// Those that have another text in the setnx protocol, and that one.
static IN_SETNX: [(&Script, &Script); 7] = [
    (&ACQUIRE, &SETNX_ACQUIRE),
    (&ASK, &SETNX_ASK),
    (&RELEASE, &SETNX_RELEASE),
    (&RENEW, &SETNX_RENEW),
    (&STATUS, &SETNX_STATUS),
    (&FORCE, &SETNX_FORCE),
    (&RIGHTS, &SETNX_RIGHTS),
];

/// Those that have another text where a history is kept, and that one.
static LOGGED: [(&Script, &Script); 7] = [
    (&ACQUIRE, &LOGGED_ACQUIRE),
    (&ASK, &LOGGED_ASK),
    (&RELEASE, &LOGGED_RELEASE),
    (&ISSUE, &LOGGED_ISSUE),
    (&DOWNGRADE, &LOGGED_DOWNGRADE),
    (&ADOPT, &LOGGED_ADOPT),
    (&RIGHTS, &LOGGED_RIGHTS),
];

/// Those that make entries in the log of a lock.
static KEEPING_LOG: [&Script; 6] = [
    &LOGGED_ACQUIRE,
    &LOGGED_ASK,
    &LOGGED_RELEASE,
    &LOGGED_ISSUE,
    &LOGGED_DOWNGRADE,
    &LOGGED_ADOPT,
];

/// Those that are loaded when a connection opens.
pub(crate) static LOADED: [&Script; 5] = [&ACQUIRE, &ASK, &RELEASE, &RENEW, &MANY];

impl Script {
    /// The script that does the same in the setnx protocol.
    pub(crate) fn in_setnx(&'static self) -> &'static Self {
        self.replaced_by(&IN_SETNX)
    }

    /// The script that does the same and keeps a history.
    pub(crate) fn logged(&'static self) -> &'static Self {
        self.replaced_by(&LOGGED)
    }

    /// Whether it is told for how many grants to keep the log of a lock.
    pub(crate) fn keeps_log(&self) -> bool {
        KEEPING_LOG.iter().any(|it| std::ptr::eq(*it, self))
    }

    /// Whether it names the log of a lock.
    pub(crate) fn has_log(&self) -> bool {
        self.keeps_log()
            || std::ptr::eq(self, &raw const FORCE)
            || std::ptr::eq(self, &raw const LOG)
    }

    fn replaced_by(&'static self, pairs: &[(&'static Self, &'static Self)]) -> &'static Self {
        let mut pairs = pairs.iter();
        pairs
            .find(|(usual, _)| std::ptr::eq(*usual, self))
            .map_or(self, |(_, other)| other)
    }

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

/// The command that a script's line names, where the server says that the user may
/// not run it: older servers say only in which line of which script.
pub(crate) fn refused_command(said: &str) -> Option<&'static str> {
    let (_, number) = said.split_once("@user_script:")?;
    let digits = number.split(|c: char| !c.is_ascii_digit()).next()?;
    let script = ALL.iter().find(|it| said.contains(it.hash.as_str()))?;
    let line = script
        .text
        .lines()
        .nth(digits.parse::<usize>().ok()?.checked_sub(1)?)?;
    let mut commands = line.split("call('").skip(1);
    let (command, _) = commands.next()?.split_once('\'')?;
    (said.contains("can't run this command") && commands.next().is_none()).then_some(command)
}

fn hash(text: &str) -> String {
    redis::Script::new(text).get_hash().to_owned()
}

//! The names of keys and channels, and which keys a call names.

use std::borrow::Cow;
use std::fmt::{self, Display};

use redis::{Cmd, RedisWrite, ToRedisArgs};

use super::scripts::{self, Script};
use super::setnx::Setnx;
use super::slot::tag_in;
use crate::backend::setup::Setup;
use crate::backend::token::Token;
use crate::types::key::LockKey;

/// Which keys a call names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The owner of the lock and the counter of all locks, for one server.
    Shared,
    /// The same, where the name of the lock is its owner key.
    Plain,
    /// Every key of the lock, with a counter of its own: all are in one slot.
    Declared,
    /// Not the owner, but the time at which the lock ends, under the name of the lock, and
    /// a note about a holder of ours.
    Setnx(Setnx),
}

/// Which neighbouring calls go as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Together {
    All,
    /// Those about one lock, all keys of which the call names: others may be in other slots.
    OfOneLock,
    None,
}

impl Layout {
    /// Whether nobody tells waiters that a lock is free.
    pub(crate) fn is_polled(self) -> bool {
        matches!(self, Self::Setnx(_))
    }

    /// Whether there is a counter of all acquisitions.
    pub(crate) fn has_counter(self) -> bool {
        matches!(self, Self::Shared | Self::Plain)
    }

    /// Whether renewals note the grants of their holders. Where every key is declared, renewals go
    /// with the owner alone.
    pub(crate) fn has_notes(self) -> bool {
        matches!(self, Self::Shared | Self::Plain)
    }

    /// Its form of a script.
    fn script(self, script: &'static Script) -> &'static Script {
        match self {
            Self::Setnx(_) => script.in_setnx(),
            Self::Declared if std::ptr::eq(script, &raw const scripts::MANY) => {
                &scripts::MANY_DECLARED
            }
            Self::Shared | Self::Plain | Self::Declared => script,
        }
    }
}

/// The other keys of a lock, named after its owner: fence, queue, seen and holders; and its
/// log, if it has a history.
const PARTS: [&str; 5] = [":f", ":q", ":s", ":h", ":l"];

/// The names of the keys and the channels, as the scripts expect them.
#[derive(Clone, Debug)]
pub(crate) struct KeyNames {
    pub(crate) prefix: Box<str>,
    pub(crate) layout: Layout,
    /// How many grants of each lock are remembered.
    pub(crate) history: usize,
    /// The counter of all acquisitions, in the layout that has one.
    pub(crate) fence: Box<str>,
    /// The key that says which run of the server has the data.
    pub(crate) run: Box<str>,
    /// The channel on which the grants of this connection are pushed. The connections
    /// of one client to the nodes of a cluster share it.
    pub(crate) channel: Box<str>,
    /// The channel that all connections listen to.
    pub(crate) common: Box<str>,
    /// The suffix that a node of a cluster adds to both, so that a message reaches only clients that
    /// listen there; else empty.
    pub(crate) at: Box<str>,
}

impl KeyNames {
    /// The name of a connection is random, never made of host and process: a
    /// clone of a machine would share it.
    pub(crate) fn new(prefix: &str, layout: Layout) -> Result<Self, getrandom::Error> {
        Ok(Self {
            prefix: prefix.into(),
            layout,
            history: 0,
            fence: format!("{prefix}:fence").into(),
            run: format!("{prefix}:run").into(),
            channel: format!("{prefix}:grant:{}", Token::new()?).into(),
            common: format!("{prefix}:all").into(),
            at: "".into(),
        })
    }

    /// Those of a connection of a manager.
    pub(crate) fn of_setup(setup: &Setup, layout: Layout) -> Result<Self, getrandom::Error> {
        Ok(Self {
            history: setup.history,
            ..Self::new(&setup.prefix, layout)?
        })
    }

    /// Those of all connections of a pool.
    pub(crate) fn of_pool(setup: &Setup, layout: Layout) -> Result<Vec<Self>, getrandom::Error> {
        let connections = 0..setup.pool_size;
        connections.map(|_| Self::of_setup(setup, layout)).collect()
    }

    /// The same, for a connection to this node of a cluster.
    pub(crate) fn at_node(&self, id: &str) -> Self {
        Self {
            at: format!(":{id}").into(),
            ..self.clone()
        }
    }

    /// The id of the node of a cluster to which the connection leads.
    pub(crate) fn node(&self) -> Option<&str> {
        self.at.strip_prefix(':')
    }

    /// The key that says which run of a node of a cluster has the data, in a slot that it
    /// serves.
    pub(crate) fn run_of_node(&self, slot: u16) -> String {
        let (prefix, tag) = (&*self.prefix, tag_in(slot));
        format!("{prefix}:{{{tag}}}:run{}", self.at)
    }

    /// The channels that the connection subscribes to: its own, and that of all.
    pub(crate) fn channels(&self) -> [String; 2] {
        [&self.channel, &self.common].map(|channel| format!("{channel}{}", self.at))
    }

    /// Whether all keys are named.
    pub(crate) fn is_declared(&self) -> bool {
        self.layout == Layout::Declared
    }

    /// Its form of a script.
    pub(crate) fn script(&self, script: &'static Script) -> &'static Script {
        match self.history {
            0 => self.layout.script(script),
            _ => self.layout.script(script).logged(),
        }
    }

    /// Which calls can go together as one.
    pub(crate) fn together(&self) -> Together {
        match self.layout {
            _ if self.history > 0 => Together::None,
            Layout::Shared | Layout::Plain => Together::All,
            Layout::Declared => Together::OfOneLock,
            Layout::Setnx(_) => Together::None,
        }
    }

    /// The pattern for the owner keys of the locks whose names match `glob`, and for their
    /// other keys too.
    pub(super) fn owners(&self, glob: &str, others: bool) -> String {
        let prefix = self.escaped_prefix();
        format!("{prefix}:{{{glob}}}{}", if others { "*" } else { "" })
    }

    /// The pattern for all keys under the prefix.
    pub(super) fn all_keys(&self) -> String {
        format!("{}:*", self.escaped_prefix())
    }

    /// The prefix as a part of a pattern.
    fn escaped_prefix(&self) -> String {
        let mut all = String::new();
        for c in self.prefix.chars() {
            if matches!(c, '[' | ']' | '^' | '\\' | '*' | '?') {
                all.push('\\');
            }
            all.push(c);
        }
        all
    }

    /// A call of a script about a key.
    pub(super) fn call(&self, script: &'static Script, key: &LockKey, by_text: bool) -> Cmd {
        self.call_on(script, &self.owner_key(key), by_text)
    }

    /// The same, about the lock with this owner key.
    pub(super) fn call_on(
        &self,
        script: &'static Script,
        owner: &impl Display,
        by_text: bool,
    ) -> Cmd {
        let script = self.script(script);
        let mut cmd = script.call(by_text);
        match self.layout {
            Layout::Setnx(_) => {
                let note = Text(format_args!("{}:{{{owner}}}:note", self.prefix));
                cmd.arg("2").arg(Text(owner)).arg(note);
            }
            Layout::Shared | Layout::Plain => {
                cmd.arg("2").arg(Text(owner)).arg(&*self.fence);
            }
            Layout::Declared => {
                let parts = if script.has_log() {
                    &PARTS[..]
                } else {
                    &PARTS[..4]
                };
                cmd.arg(parts.len() + 1).arg(Text(owner));
                for part in parts {
                    cmd.arg(Text(format_args!("{owner}{part}")));
                }
            }
        }
        cmd
    }

    /// The key that is written to see whether replicas have what was said about a lock: on
    /// the node of a cluster that serves it.
    pub(crate) fn mark(&self, key: &LockKey) -> String {
        let (prefix, key) = (&*self.prefix, key.as_str());
        match self.layout {
            Layout::Shared | Layout::Plain | Layout::Setnx(_) => format!("{prefix}:replicas"),
            Layout::Declared => format!("{prefix}:{{{key}}}:replicas"),
        }
    }

    /// The owner key of a lock.
    pub(super) fn owner_key<'a>(&'a self, key: &'a LockKey) -> impl Display + use<'a> {
        match self.layout {
            Layout::Shared | Layout::Declared => OwnerKey::InBraces(&self.prefix, key.as_str()),
            Layout::Plain | Layout::Setnx(_) => OwnerKey::Plain(key.text()),
        }
    }

    /// The same, as an argument.
    pub(crate) fn owner(&self, cmd: &mut Cmd, key: &LockKey) {
        cmd.arg(Text(self.owner_key(key)));
    }

    /// Adds how many keys hold the lock alone or shared, and these.
    pub(super) fn holders(&self, cmd: &mut Cmd, key: &LockKey, is_alone: bool) {
        let owner = self.owner_key(key);
        if is_alone {
            cmd.arg("1").arg(Text(&owner));
        } else {
            cmd.arg("2").arg(Text(&owner));
            cmd.arg(Text(format_args!("{owner}:h")));
        }
    }
}

enum OwnerKey<'a> {
    InBraces(&'a str, &'a str),
    Plain(Cow<'a, str>),
}

impl Display for OwnerKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InBraces(prefix, key) => write!(f, "{prefix}:{{{key}}}"),
            Self::Plain(key) => f.write_str(key),
        }
    }
}

/// An argument that is written without a copy in between.
pub(crate) struct Text<T>(pub(super) T);

impl<T: Display> ToRedisArgs for Text<T> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        out.write_arg_fmt(&self.0);
    }
}

impl<T: Display> redis::ToSingleRedisArg for Text<T> {}

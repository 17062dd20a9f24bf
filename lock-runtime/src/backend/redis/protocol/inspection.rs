//! The steps of queries, as values and as commands.

use std::fmt;

use redis::{Cmd, Value};

use super::names::{KeyNames, Text};
use super::scripts;
use crate::backend::queue::protocol::message::Message;
use crate::backend::queue::protocol::step::{self, Step};
use crate::backend::token::Token;
use crate::types::key::LockKey;
use crate::types::overview::MOST_HOLDERS;

/// The query that awaits the reply to a step.
pub(crate) type AskedBy = step::AskedBy<Inspect>;

/// A step of a query.
#[derive(Clone, Debug)]
pub(crate) enum Inspect {
    Status(LockKey),
    /// The value of the owner of a lock.
    Owner(LockKey),
    /// The counter of a lock, where each has one.
    Counter(LockKey),
    /// Asks the holders with these tokens to report.
    Holders(Vec<Token>),
    /// Asks the holders with these tokens to yield, and to report that they have heard of it.
    Wanted(Vec<Token>),
    /// A page of the owners of locks, and of the queues where `queues` says so.
    Scan {
        glob: Box<str>,
        queues: bool,
        cursor: u64,
    },
    /// The basic facts about these locks.
    Overview(Box<[LockKey]>),
    /// One page of all keys under the prefix.
    Keys {
        cursor: u64,
    },
    /// How much time a key has left.
    Left(Box<str>),
    /// Something that locks depend on.
    Fact(Fact),
    ForceRelease(LockKey),
    /// The history of a lock, and who holds it.
    Log(LockKey),
    /// Which nodes there are in a cluster.
    Topology,
    /// A message from this connection to itself.
    Echo,
}

/// Something about the server that locks depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Fact {
    Info,
    /// The settings that match a pattern.
    Config(&'static str),
    Clock,
    /// Which of the commands in the scripts are refused.
    Rights,
    /// The answer to a command that connections send if they may.
    Useful(&'static [&'static str]),
}

/// How a call has come to a node of a cluster.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Route {
    /// How often another node has sent it on.
    pub(crate) hops: u8,
    /// Whether it goes to a node that has only begun to take over the lock.
    pub(crate) asking: bool,
}

impl Step for Inspect {
    type Answer = Value;
    type Route = Route;

    fn may_grant(&self) -> Option<&LockKey> {
        match self {
            Self::ForceRelease(key) => Some(key),
            _ => None,
        }
    }

    fn key(&self) -> Option<&LockKey> {
        match self {
            Self::Status(key)
            | Self::Owner(key)
            | Self::Counter(key)
            | Self::ForceRelease(key)
            | Self::Log(key) => Some(key),
            Self::Overview(keys) => keys.first(),
            _ => None,
        }
    }
}

impl Inspect {
    pub(super) fn encode(&self, names: &KeyNames, by_text: bool) -> Cmd {
        match self {
            Self::Status(key) => {
                let mut cmd = names.call(&scripts::STATUS, key, by_text);
                cmd.arg(u8::from(names.layout.has_notes()));
                cmd
            }
            Self::Log(key) => names.call(&scripts::LOG, key, by_text),
            Self::ForceRelease(key) => {
                let mut cmd = names.call(&scripts::FORCE, key, by_text);
                cmd.arg(&*names.common);
                cmd
            }
            Self::Scan {
                glob,
                queues,
                cursor,
            } => scan(*cursor, &names.owners(glob, *queues)),
            Self::Keys { cursor } => scan(*cursor, &names.all_keys()),
            Self::Left(key) => words(&["PTTL", key]),
            Self::Owner(key) => get(format_args!("{}", names.owner_key(key))),
            Self::Counter(key) => get(format_args!("{}:f", names.owner_key(key))),
            Self::Overview(keys) => {
                let mut cmd = scripts::OVERVIEW.call(by_text);
                if names.is_declared() {
                    // One by one: they may be on different nodes.
                    cmd.arg(4 * keys.len());
                    for key in keys {
                        let owner = names.owner_key(key);
                        for part in [":f", "", ":q", ":h"] {
                            cmd.arg(Text(format_args!("{owner}{part}")));
                        }
                    }
                } else {
                    cmd.arg(keys.len() + 1).arg(&*names.fence);
                    for key in keys {
                        names.owner(&mut cmd, key);
                    }
                }
                cmd.arg(MOST_HOLDERS)
                    .arg(keys.len())
                    .arg(u8::from(names.layout.has_notes()));
                cmd
            }
            Self::Fact(fact) => fact.encode(names, by_text),
            Self::Topology => words(&["CLUSTER", "SLOTS"]),
            Self::Echo => {
                let [own, _] = names.channels();
                words(&["PUBLISH", &own, ""])
            }
            Self::Holders(tokens) | Self::Wanted(tokens) => {
                let [own, common] = names.channels();
                let (channel, tokens) = (own.into(), tokens.clone());
                let message = match self {
                    Self::Wanted(_) => Message::Wanted { channel, tokens },
                    _ => Message::Asked { channel, tokens },
                };
                publish(&common, &message)
            }
        }
    }
}

impl Fact {
    fn encode(self, names: &KeyNames, by_text: bool) -> Cmd {
        match self {
            Self::Info => redis::cmd("INFO"),
            Self::Config(pattern) => words(&["CONFIG", "GET", pattern]),
            Self::Clock => redis::cmd("TIME"),
            Self::Rights => {
                let mut cmd = names.script(&scripts::RIGHTS).call(by_text);
                // In braces, so that the keys made from it are in the same slot.
                let scratch = format!("{}:{{{}}}:scratch", names.prefix, names.channel);
                cmd.arg(1).arg(scratch).arg(&*names.channel);
                cmd
            }
            Self::Useful(command) => words(command),
        }
    }
}

fn scan(cursor: u64, pattern: &str) -> Cmd {
    let mut cmd = redis::cmd("SCAN");
    cmd.arg(cursor).arg("MATCH").arg(pattern);
    cmd.arg("COUNT").arg(500);
    cmd
}

fn words(words: &[&str]) -> Cmd {
    let mut cmd = Cmd::new();
    cmd.arg(words);
    cmd
}

fn get(key: fmt::Arguments<'_>) -> Cmd {
    let mut cmd = redis::cmd("GET");
    cmd.arg(Text(key));
    cmd
}

pub(super) fn publish(channel: &str, message: &Message) -> Cmd {
    let mut cmd = redis::cmd("PUBLISH");
    cmd.arg(channel).arg(Text(message));
    cmd
}

//! Calls to the server, as values and as commands.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisWrite, ToRedisArgs};

use super::kind::KindCode;
use super::message::{Grant, Message};
use super::scripts::{self, Script};
use crate::backend::name;
use crate::backend::setup::Setup;
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::vocabulary::key::LockKey;
use crate::vocabulary::kind::Kind;
use crate::vocabulary::overview::MOST_HOLDERS;
use crate::vocabulary::query::QueryId;
use crate::vocabulary::terms::Terms;

/// An acquisition with its current token, which changes if it has to start over.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    pub(crate) terms: Arc<Terms>,
    pub(crate) token: Token,
    /// The name on the server, which begins with the token.
    pub(crate) name: Arc<str>,
}

impl Ticket {
    pub(crate) fn new(token: Token, terms: Arc<Terms>) -> Self {
        let name = name::name(token, &terms).into();
        Self { terms, token, name }
    }
}

/// One call to the server.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Acquire {
        ticket: Ticket,
        /// The place in the queue that an earlier token of the same waiter had.
        place: Option<u64>,
    },
    /// All tickets are of one key.
    Ask(Vec<Ticket>),
    Leave(Ticket),
    Renew(Ticket),
    /// Renews, and lets the counter of acquisitions be no smaller than this.
    Raise {
        ticket: Ticket,
        fence: u64,
    },
    Release {
        ticket: Ticket,
        /// How long the lock rests.
        rest: Duration,
        /// Whether others are likely to wait for it.
        crowded: bool,
    },
    /// Releases a grant that nobody here knows.
    Disown(Grant),
    /// A step of the inspection that answers a query.
    Inspect(QueryId, Inspect),
    /// Tells a connection about a lock that is held here.
    Report {
        channel: Box<str>,
        token: Token,
        fence: u64,
        held: Duration,
    },
}

/// A step of an inspection.
#[derive(Clone, Debug)]
pub(crate) enum Inspect {
    Status(LockKey),
    /// Asks the holders with these tokens to report.
    Holders(Vec<Token>),
    /// A page of the owners of locks, and of the queues where `lines` says so.
    Scan {
        glob: Box<str>,
        lines: bool,
        cursor: u64,
    },
    /// The basic facts about these locks.
    Overview(Box<[LockKey]>),
    /// Something that locks depend on.
    Fact(Fact),
    ForceRelease(LockKey),
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
    /// The answer to a command that connections send where they may.
    Useful(&'static [&'static str]),
}

/// A call and the moment before it was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) call: Call,
    pub(crate) at: Moment,
}

/// The names of the keys and the channels, as the scripts expect them.
#[derive(Clone, Debug)]
pub(crate) struct KeyNames {
    pub(crate) prefix: Box<str>,
    /// The counter of acquisitions.
    pub(crate) fence: Box<str>,
    /// The key that is written to see whether replicas have it.
    pub(crate) mark: Box<str>,
    /// The channel of this connection, on which its grants are pushed.
    pub(crate) channel: Box<str>,
    /// The channel that all connections listen to.
    pub(crate) common: Box<str>,
}

impl KeyNames {
    /// The name of a connection is random, never made of host and process: a
    /// clone of a machine would share it.
    pub(crate) fn new(prefix: &str) -> Result<Self, getrandom::Error> {
        Ok(Self {
            prefix: prefix.into(),
            fence: format!("{prefix}:fence").into(),
            mark: format!("{prefix}:replicas").into(),
            channel: format!("{prefix}:grant:{}", Token::new()?).into(),
            common: format!("{prefix}:all").into(),
        })
    }

    /// Those of all connections of a pool.
    pub(crate) fn of_pool(setup: &Setup) -> Result<Vec<Self>, getrandom::Error> {
        let connections = 0..setup.pool_size;
        connections.map(|_| Self::new(&setup.prefix)).collect()
    }

    /// The pattern for the owner keys of the locks whose names match `glob`, and for their
    /// other keys too.
    fn owners(&self, glob: &str, others: bool) -> String {
        let mut all = String::new();
        for c in self.prefix.chars() {
            if matches!(c, '[' | ']' | '^' | '\\' | '*' | '?') {
                all.push('\\');
            }
            all.push(c);
        }
        format!("{all}:{{{glob}}}{}", if others { "*" } else { "" })
    }

    /// A call of a script about a key.
    fn call(&self, script: &Script, key: &LockKey, by_text: bool) -> Cmd {
        let mut cmd = script.call(by_text);
        cmd.arg("2");
        self.owner(&mut cmd, key);
        cmd.arg(&*self.fence);
        cmd
    }

    /// The owner key of a lock.
    pub(crate) fn owner(&self, cmd: &mut Cmd, key: &LockKey) {
        let (prefix, key) = (&*self.prefix, key.as_str());
        cmd.arg(Text(format_args!("{prefix}:{{{key}}}")));
    }

    /// The member that stands for a ticket in the queue.
    fn member(&self, cmd: &mut Cmd, ticket: &Ticket) {
        let (terms, channel) = (&*ticket.terms, &self.channel);
        let (kind, ttl, name) = (KindCode(terms.kind), millis(terms.ttl), &ticket.name);
        cmd.arg(Text(format_args!("{kind}:{ttl}:{channel}\n{name}")));
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

impl Call {
    /// The script that it calls, if it calls one.
    pub(crate) fn script(&self) -> Option<&'static Script> {
        Some(match self {
            Self::Acquire { .. } => &scripts::ACQUIRE,
            Self::Ask(_) => &scripts::ASK,
            Self::Leave(_) | Self::Release { .. } | Self::Disown(_) => &scripts::RELEASE,
            Self::Renew(_) => &scripts::RENEW,
            Self::Raise { .. } => &scripts::RAISE,
            Self::Inspect(_, Inspect::Status(_)) => &scripts::STATUS,
            Self::Inspect(_, Inspect::Overview(_)) => &scripts::OVERVIEW,
            Self::Inspect(_, Inspect::Fact(Fact::Rights)) => &scripts::RIGHTS,
            Self::Inspect(_, Inspect::ForceRelease(_)) => &scripts::FORCE,
            Self::Inspect(..) | Self::Report { .. } => return None,
        })
    }

    /// Whether it is likely to hand the lock over.
    pub(crate) fn hands_over(&self) -> bool {
        matches!(self, Self::Release { crowded: true, .. })
    }

    /// How long its answer may take.
    pub(crate) fn timeout(&self) -> Duration {
        const LONGEST: Duration = Duration::from_secs(1);
        match self {
            Self::Acquire { ticket, .. }
            | Self::Leave(ticket)
            | Self::Renew(ticket)
            | Self::Raise { ticket, .. }
            | Self::Release { ticket, .. } => ticket.terms.call_timeout(),
            Self::Ask(tickets) => {
                let timeouts = tickets.iter().map(|ticket| ticket.terms.call_timeout());
                timeouts.min().unwrap_or(LONGEST)
            }
            Self::Disown(_) | Self::Inspect(..) | Self::Report { .. } => LONGEST,
        }
    }

    /// The command, with the script's text instead of its hash if `by_text`.
    pub(crate) fn encode(&self, names: &KeyNames, by_text: bool) -> Cmd {
        let script = |script, key| names.call(script, key, by_text);
        let renew = |script, ticket: &Ticket| {
            let terms = &ticket.terms;
            let mut cmd = names.call(script, &terms.key, by_text);
            cmd.arg(&*ticket.name)
                .arg(millis(terms.ttl))
                .arg(Text(KindCode(terms.kind)));
            cmd
        };
        match self {
            Self::Acquire { ticket, place } => {
                let terms = &ticket.terms;
                let mut cmd = script(&scripts::ACQUIRE, &terms.key);
                cmd.arg(&*ticket.name)
                    .arg(millis(terms.ttl))
                    .arg(if terms.wait.is_try() {
                        ""
                    } else {
                        &*names.channel
                    });
                if terms.kind != Kind::Exclusive || place.is_some() {
                    cmd.arg(Text(KindCode(terms.kind)));
                }
                if let Some(place) = place {
                    cmd.arg(place);
                }
                cmd
            }
            Self::Ask(tickets) => {
                let mut cmd = script(&scripts::ASK, &tickets[0].terms.key);
                cmd.arg(&*names.channel);
                for ticket in tickets {
                    names.member(&mut cmd, ticket);
                }
                cmd
            }
            Self::Leave(ticket) => {
                let mut cmd = script(&scripts::RELEASE, &ticket.terms.key);
                cmd.arg(&*ticket.name);
                names.member(&mut cmd, ticket);
                cmd
            }
            Self::Release { ticket, rest, .. } => {
                let mut cmd = script(&scripts::RELEASE, &ticket.terms.key);
                cmd.arg(&*ticket.name);
                if !rest.is_zero() {
                    cmd.arg("").arg(millis(*rest));
                }
                cmd
            }
            Self::Disown(grant) => {
                let mut cmd = scripts::RELEASE.call(by_text);
                cmd.arg("2").arg(&*grant.owner).arg(&*names.fence);
                cmd.arg(&*grant.name);
                cmd
            }
            Self::Renew(ticket) => renew(&scripts::RENEW, ticket),
            Self::Raise { ticket, fence } => {
                let mut cmd = renew(&scripts::RAISE, ticket);
                cmd.arg(fence);
                cmd
            }
            Self::Inspect(_, step) => step.encode(names, by_text),
            Self::Report {
                channel,
                token,
                fence,
                held,
            } => {
                let (token, fence, held) = (*token, *fence, *held);
                publish(channel, &Message::Told { token, fence, held })
            }
        }
    }
}

impl Inspect {
    fn encode(&self, names: &KeyNames, by_text: bool) -> Cmd {
        match self {
            Self::Status(key) => names.call(&scripts::STATUS, key, by_text),
            Self::ForceRelease(key) => {
                let mut cmd = names.call(&scripts::FORCE, key, by_text);
                cmd.arg(&*names.common);
                cmd
            }
            Self::Scan {
                glob,
                lines,
                cursor,
            } => {
                let mut cmd = redis::cmd("SCAN");
                cmd.arg(cursor).arg("MATCH").arg(names.owners(glob, *lines));
                cmd.arg("COUNT").arg(1000);
                cmd
            }
            Self::Overview(keys) => {
                let mut cmd = scripts::OVERVIEW.call(by_text);
                cmd.arg(keys.len() + 1).arg(&*names.fence);
                for key in keys {
                    names.owner(&mut cmd, key);
                }
                cmd.arg(MOST_HOLDERS);
                cmd
            }
            Self::Fact(fact) => fact.encode(names, by_text),
            Self::Echo => {
                let mut cmd = redis::cmd("PUBLISH");
                cmd.arg(&*names.channel).arg("");
                cmd
            }
            Self::Holders(tokens) => {
                let message = Message::Asked {
                    channel: names.channel.clone(),
                    tokens: tokens.clone(),
                };
                publish(&names.common, &message)
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
                let mut cmd = scripts::RIGHTS.call(by_text);
                let scratch = format!("{}:scratch", names.channel);
                cmd.arg(1).arg(scratch).arg(&*names.channel);
                cmd
            }
            Self::Useful(command) => words(command),
        }
    }
}

fn words(words: &[&str]) -> Cmd {
    let mut cmd = Cmd::new();
    cmd.arg(words);
    cmd
}

fn publish(channel: &str, message: &Message) -> Cmd {
    let mut cmd = redis::cmd("PUBLISH");
    cmd.arg(channel).arg(Text(message));
    cmd
}

/// Rounded up: a lock that rests for less than a millisecond rests for one.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

//! Calls to the server, as values and as commands.

use std::fmt::{self, Display};
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

    /// The same, for a lease that is no longer than this.
    pub(crate) fn at_most(&self, longest: Duration) -> Self {
        let mut ticket = self.clone();
        if self.terms.ttl > longest {
            Arc::make_mut(&mut ticket.terms).ttl = longest;
        }
        ticket
    }
}

/// What an acquisition says of others of its connection that want the same lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    /// Nothing.
    Unsaid,
    /// There are more, and they may be granted the lock together.
    More,
    /// It is to be granted alone.
    Alone,
}

impl Company {
    /// The mark of it in a call.
    pub(super) fn mark(self) -> &'static str {
        match self {
            Self::Unsaid => "",
            Self::More => "+",
            Self::Alone => "-",
        }
    }
}

/// One call to the server.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Acquire {
        ticket: Ticket,
        /// The place in the queue that an earlier token of the same waiter had.
        place: Option<u64>,
        company: Company,
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
    /// Ends a lease after this time, and hands nothing on.
    Shorten {
        ticket: Ticket,
        left: Duration,
    },
    /// Releases a grant that nobody here knows.
    Disown(Grant),
    /// A step of the inspection that answers a query.
    Inspect(QueryId, Inspect),
    /// Asks a node of a cluster which nodes there are.
    Topology,
    /// Tells a connection about a lock that is held here.
    Report {
        channel: Box<str>,
        token: Token,
        fence: u64,
        held: Duration,
        /// How many it is to be passed on to.
        followers: usize,
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
    /// How often another node has sent it on.
    pub(crate) hops: u8,
    /// Whether it goes to a node that has only begun to take over the lock.
    pub(crate) asking: bool,
}

impl Sent {
    pub(crate) fn new(call: Call, at: Moment) -> Self {
        Self {
            call,
            at,
            hops: 0,
            asking: false,
        }
    }
}

/// Which keys a call names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The owner of the lock and the counter of all locks, for one server.
    Shared,
    /// Every key of the lock, with a counter of its own: all are in one slot.
    Declared,
}

/// The other keys of a lock, named after its owner: fence, queue, seen and holders.
const PARTS: [&str; 4] = [":f", ":q", ":s", ":h"];

/// The names of the keys and the channels, as the scripts expect them.
#[derive(Clone, Debug)]
pub(crate) struct KeyNames {
    pub(crate) prefix: Box<str>,
    pub(crate) layout: Layout,
    /// The counter of all acquisitions, in the layout that has one.
    pub(crate) fence: Box<str>,
    /// The key that says which run of the server has the data.
    pub(crate) run: Box<str>,
    /// The channel on which the grants of this connection are pushed. The connections
    /// of one client to the nodes of a cluster share it.
    pub(crate) channel: Box<str>,
    /// The channel that all connections listen to.
    pub(crate) common: Box<str>,
    /// What a node of a cluster adds to both, so that a message reaches those alone who
    /// listen there: else nothing.
    pub(crate) at: Box<str>,
}

impl KeyNames {
    /// The name of a connection is random, never made of host and process: a
    /// clone of a machine would share it.
    pub(crate) fn new(prefix: &str, layout: Layout) -> Result<Self, getrandom::Error> {
        Ok(Self {
            prefix: prefix.into(),
            layout,
            fence: format!("{prefix}:fence").into(),
            run: format!("{prefix}:run").into(),
            channel: format!("{prefix}:grant:{}", Token::new()?).into(),
            common: format!("{prefix}:all").into(),
            at: "".into(),
        })
    }

    /// Those of all connections of a pool.
    pub(crate) fn of_pool(setup: &Setup, layout: Layout) -> Result<Vec<Self>, getrandom::Error> {
        let connections = 0..setup.pool_size;
        connections
            .map(|_| Self::new(&setup.prefix, layout))
            .collect()
    }

    /// The same, for a connection to this node of a cluster.
    pub(crate) fn at_node(&self, id: &str) -> Self {
        Self {
            at: format!(":{id}").into(),
            ..self.clone()
        }
    }

    /// The channels that the connection subscribes to: its own, and that of all.
    pub(crate) fn channels(&self) -> [String; 2] {
        [&self.channel, &self.common].map(|channel| format!("{channel}{}", self.at))
    }

    /// Whether all keys are named.
    pub(crate) fn is_declared(&self) -> bool {
        self.layout == Layout::Declared
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
        self.call_on(script, &self.owner_key(key), by_text)
    }

    /// The same, about the lock with this owner key.
    fn call_on(&self, script: &Script, owner: &impl Display, by_text: bool) -> Cmd {
        let mut cmd = script.call(by_text);
        match self.layout {
            Layout::Shared => {
                cmd.arg("2").arg(Text(owner)).arg(&*self.fence);
            }
            Layout::Declared => {
                cmd.arg("5").arg(Text(owner));
                for part in PARTS {
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
            Layout::Shared => format!("{prefix}:replicas"),
            Layout::Declared => format!("{prefix}:{{{key}}}:replicas"),
        }
    }

    /// The owner key of a lock.
    fn owner_key<'a>(&'a self, key: &'a LockKey) -> impl Display + use<'a> {
        OwnerKey(&self.prefix, key.as_str())
    }

    /// The same, as an argument.
    pub(crate) fn owner(&self, cmd: &mut Cmd, key: &LockKey) {
        cmd.arg(Text(self.owner_key(key)));
    }

    /// The member that stands for a ticket in the queue.
    fn member(&self, cmd: &mut Cmd, ticket: &Ticket) {
        let (terms, channel) = (&*ticket.terms, &self.channel);
        let (kind, ttl, name) = (KindCode(terms.kind), millis(terms.ttl), &ticket.name);
        cmd.arg(Text(format_args!("{kind}:{ttl}:{channel}\n{name}")));
    }
}

struct OwnerKey<'a>(&'a str, &'a str);

impl Display for OwnerKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(prefix, key) = self;
        write!(f, "{prefix}:{{{key}}}")
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
            Self::Renew(_) | Self::Shorten { .. } => &scripts::RENEW,
            Self::Raise { .. } => &scripts::RAISE,
            Self::Inspect(_, Inspect::Status(_)) => &scripts::STATUS,
            Self::Inspect(_, Inspect::Overview(_)) => &scripts::OVERVIEW,
            Self::Inspect(_, Inspect::Fact(Fact::Rights)) => &scripts::RIGHTS,
            Self::Inspect(_, Inspect::ForceRelease(_)) => &scripts::FORCE,
            Self::Inspect(..) | Self::Topology | Self::Report { .. } => return None,
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
            | Self::Shorten { ticket, .. }
            | Self::Release { ticket, .. } => ticket.terms.call_timeout(),
            Self::Ask(tickets) => {
                let timeouts = tickets.iter().map(|ticket| ticket.terms.call_timeout());
                timeouts.min().unwrap_or(LONGEST)
            }
            Self::Disown(_) | Self::Inspect(..) | Self::Topology | Self::Report { .. } => LONGEST,
        }
    }

    /// The command, with the script's text instead of its hash if `by_text`.
    pub(crate) fn encode(&self, names: &KeyNames, by_text: bool) -> Cmd {
        let mut cmd = self.encode_for(names, by_text);
        if names.is_declared() && self.script().is_some() && !self.needs_owner_alone() {
            cmd.arg(&*names.at);
        }
        cmd
    }

    /// Whether it needs no other key of the lock: it is served then also while the keys
    /// of the lock are on their way from one node to another.
    fn needs_owner_alone(&self) -> bool {
        let (Self::Renew(ticket) | Self::Shorten { ticket, .. }) = self else {
            return false;
        };
        ticket.terms.kind == Kind::Exclusive
    }

    /// The lock that it is about.
    pub(crate) fn key(&self) -> Option<&LockKey> {
        match self {
            Self::Acquire { ticket, .. }
            | Self::Leave(ticket)
            | Self::Renew(ticket)
            | Self::Raise { ticket, .. }
            | Self::Shorten { ticket, .. }
            | Self::Release { ticket, .. } => Some(&ticket.terms.key),
            Self::Ask(tickets) => tickets.first().map(|ticket| &ticket.terms.key),
            Self::Inspect(_, Inspect::Status(key) | Inspect::ForceRelease(key)) => Some(key),
            Self::Inspect(_, Inspect::Overview(keys)) => keys.first(),
            Self::Disown(_) | Self::Inspect(..) | Self::Report { .. } | Self::Topology => None,
        }
    }

    fn encode_for(&self, names: &KeyNames, by_text: bool) -> Cmd {
        let script = |script, key| names.call(script, key, by_text);
        let renew = |ticket: &Ticket, ttl| {
            let key = &ticket.terms.key;
            let mut cmd = if names.is_declared() && self.needs_owner_alone() {
                let mut cmd = scripts::RENEW.call(by_text);
                cmd.arg("1");
                names.owner(&mut cmd, key);
                cmd
            } else {
                names.call(&scripts::RENEW, key, by_text)
            };
            cmd.arg(&*ticket.name)
                // None at all would be refused.
                .arg(millis(ttl).max(1))
                .arg(Text(KindCode(ticket.terms.kind)));
            cmd
        };
        match self {
            Self::Acquire {
                ticket,
                place,
                company,
            } => {
                let terms = &ticket.terms;
                let mut cmd = script(&scripts::ACQUIRE, &terms.key);
                cmd.arg(&*ticket.name)
                    .arg(millis(terms.ttl))
                    .arg(if terms.wait.is_try() {
                        ""
                    } else {
                        &*names.channel
                    });
                if terms.kind != Kind::Exclusive || *company != Company::Unsaid || place.is_some() {
                    let (kind, mark) = (KindCode(terms.kind), company.mark());
                    cmd.arg(Text(format_args!("{kind}{mark}")));
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
                let mut cmd = names.call_on(&scripts::RELEASE, &grant.owner, by_text);
                cmd.arg(&*grant.name);
                cmd
            }
            Self::Renew(ticket) => renew(ticket, ticket.terms.ttl),
            Self::Shorten { ticket, left } => renew(ticket, *left),
            Self::Raise { ticket, fence } => {
                let terms = &ticket.terms;
                let mut cmd = script(&scripts::RAISE, &terms.key);
                cmd.arg(&*ticket.name)
                    .arg(millis(terms.ttl))
                    .arg(Text(KindCode(terms.kind)))
                    .arg(fence);
                cmd
            }
            Self::Topology => words(&["CLUSTER", "SLOTS"]),
            Self::Inspect(_, step) => step.encode(names, by_text),
            Self::Report {
                channel,
                token,
                fence,
                held,
                followers,
            } => {
                let message = Message::Told {
                    token: *token,
                    fence: *fence,
                    held: *held,
                    followers: *followers,
                };
                publish(channel, &message)
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
                cmd.arg("COUNT").arg(500);
                cmd
            }
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
                cmd.arg(MOST_HOLDERS).arg(keys.len());
                cmd
            }
            Self::Fact(fact) => fact.encode(names, by_text),
            Self::Echo => {
                let [own, _] = names.channels();
                words(&["PUBLISH", &own, ""])
            }
            Self::Holders(tokens) => {
                let [own, common] = names.channels();
                let message = Message::Asked {
                    channel: own.into(),
                    tokens: tokens.clone(),
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
                let mut cmd = scripts::RIGHTS.call(by_text);
                // In braces, so that what is made of it is in the same slot.
                let scratch = format!("{}:{{{}}}:scratch", names.prefix, names.channel);
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

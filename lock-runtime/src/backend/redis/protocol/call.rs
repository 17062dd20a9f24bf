//! Calls to the server, as values and as commands.

use std::sync::Arc;
use std::time::Duration;

use redis::Cmd;

use super::inspection::{AskedBy, Fact, Inspect, publish, words};
use super::kind::KindCode;
use super::message::{Grant, Message};
use super::names::{KeyNames, Layout, Text};
use super::scripts::{self, Script};
use crate::backend::name;
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::terms::Terms;

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
    /// A step of a query.
    Inspect(Inspect),
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

/// A call and the moment before it was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) call: Call,
    pub(crate) at: Moment,
    /// The query that awaits the reply, if one does.
    pub(crate) by: Option<AskedBy>,
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
            by: None,
            hops: 0,
            asking: false,
        }
    }

    /// A step of a query that awaits the reply.
    pub(crate) fn step(step: Inspect, by: AskedBy, at: Moment) -> Self {
        Self {
            by: Some(by),
            ..Self::new(Call::Inspect(step), at)
        }
    }
}

impl Call {
    /// The script that it calls, if it calls one.
    pub(crate) fn script(&self) -> Option<&'static Script> {
        Some(match self {
            Self::Acquire { .. } => &scripts::ACQUIRE,
            Self::Ask(_) => &scripts::ASK,
            Self::Leave(_) | Self::Release { .. } | Self::Disown(_) => &scripts::RELEASE,
            Self::Renew(_) | Self::Shorten { .. } => &scripts::RENEW,
            Self::Raise { .. } => &scripts::RAISE,
            Self::Inspect(Inspect::Status(_)) => &scripts::STATUS,
            Self::Inspect(Inspect::Overview(_)) => &scripts::OVERVIEW,
            Self::Inspect(Inspect::Fact(Fact::Rights)) => &scripts::RIGHTS,
            Self::Inspect(Inspect::ForceRelease(_)) => &scripts::FORCE,
            Self::Inspect(..) | Self::Topology | Self::Report { .. } => return None,
        })
    }

    /// Whether it is likely to hand the lock over.
    pub(crate) fn hands_over(&self) -> bool {
        matches!(self, Self::Release { crowded: true, .. })
    }

    /// Whether it may grant a lock to somebody.
    pub(crate) fn may_grant(&self) -> bool {
        matches!(
            self,
            Self::Acquire { .. }
                | Self::Ask(_)
                | Self::Leave(_)
                | Self::Release { .. }
                | Self::Disown(_)
                | Self::Inspect(Inspect::ForceRelease(_))
        )
    }

    /// Whether its answer may say that a lock is ours.
    pub(crate) fn may_win(&self) -> bool {
        matches!(
            self,
            Self::Acquire { .. } | Self::Ask(_) | Self::Renew(_) | Self::Raise { .. }
        )
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
        if self.script().is_none() {
            return cmd;
        }
        match names.layout {
            Layout::Declared if !self.needs_owner_alone() => {
                cmd.arg(&*names.at);
            }
            Layout::Setnx(setnx) => {
                let (unit, offset) = setnx.arguments();
                cmd.arg(unit).arg(Text(offset));
            }
            Layout::Shared | Layout::Plain | Layout::Declared => {}
        }
        cmd
    }

    /// Whether it needs no other key of the lock: it is served then also while the keys
    /// of the lock are on their way from one node to another.
    pub(crate) fn needs_owner_alone(&self) -> bool {
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
            Self::Inspect(step) => step.key(),
            Self::Disown(_) | Self::Report { .. } | Self::Topology => None,
        }
    }

    fn encode_for(&self, names: &KeyNames, by_text: bool) -> Cmd {
        let script = |script: &'static Script, key| names.call(script, key, by_text);
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
                    add_member(&mut cmd, names, ticket);
                }
                cmd
            }
            Self::Leave(ticket) => {
                let mut cmd = script(&scripts::RELEASE, &ticket.terms.key);
                cmd.arg(&*ticket.name);
                add_member(&mut cmd, names, ticket);
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
            Self::Inspect(step) => step.encode(names, by_text),
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

/// The member that stands for a ticket in the queue.
fn add_member(cmd: &mut Cmd, names: &KeyNames, ticket: &Ticket) {
    let (terms, channel) = (&*ticket.terms, &names.channel);
    let (kind, ttl, name) = (KindCode(terms.kind), millis(terms.ttl), &ticket.name);
    cmd.arg(Text(format_args!("{kind}:{ttl}:{channel}\n{name}")));
}

/// Rounded up: a lock that rests for less than a millisecond rests for one.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

//! Calls as commands.

use redis::Cmd;

use super::inspection::{Fact, Inspect, publish};
use super::names::{KeyNames, Layout, Text};
use super::scripts::{self, Script};
use crate::backend::queue;
use crate::backend::queue::protocol::call::{self, Company, Ticket, mark, millis};
use crate::backend::queue::protocol::kind::KindCode;
use crate::backend::queue::protocol::message::Message;
use crate::types::kind::Kind;

/// The queue of a connection to Redis.
pub(crate) type Queue = queue::Queue<Inspect>;
pub(crate) type Call = call::Call<Inspect>;
pub(crate) type Sent = call::Sent<Inspect>;

impl Call {
    /// The script that it calls, if it calls one.
    pub(crate) fn script(&self) -> Option<&'static Script> {
        Some(match self {
            Self::Acquire { .. } => &scripts::ACQUIRE,
            Self::Ask(_) => &scripts::ASK,
            Self::Leave(_) | Self::Release { .. } | Self::Disown(_) => &scripts::RELEASE,
            // Redis need not know who of a chain holds the lock.
            Self::Renew(_) | Self::Shorten { .. } | Self::Pass { .. } => &scripts::RENEW,
            Self::Raise { .. } => &scripts::RAISE,
            Self::Step(Inspect::Status(_)) => &scripts::STATUS,
            Self::Step(Inspect::Overview(_)) => &scripts::OVERVIEW,
            Self::Step(Inspect::Log(_)) => &scripts::LOG,
            Self::Step(Inspect::Fact(Fact::Rights)) => &scripts::RIGHTS,
            Self::Step(Inspect::ForceRelease(_)) => &scripts::FORCE,
            Self::Step(_) | Self::Report { .. } => return None,
        })
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
                | Self::Step(Inspect::ForceRelease(_))
        )
    }

    /// Whether its answer may say that a lock is ours.
    pub(crate) fn may_win(&self) -> bool {
        matches!(
            self,
            Self::Acquire { .. } | Self::Ask(_) | Self::Renew(_) | Self::Raise { .. }
        )
    }

    /// The command, with the script's text instead of its hash if `by_text`.
    pub(crate) fn encode(&self, names: &KeyNames, by_text: bool) -> Cmd {
        let mut cmd = self.encode_for(names, by_text);
        let Some(script) = self.script() else {
            return cmd;
        };
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
        if names.script(script).keeps_log() {
            cmd.arg(names.history);
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
                position,
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
                if terms.kind != Kind::Exclusive
                    || *company != Company::Unsaid
                    || position.is_some()
                {
                    let (kind, mark) = (KindCode(terms.kind), mark(*company));
                    cmd.arg(Text(format_args!("{kind}{mark}")));
                }
                if let Some(position) = position {
                    cmd.arg(position);
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
            Self::Release {
                ticket, cooldown, ..
            } => {
                let mut cmd = script(&scripts::RELEASE, &ticket.terms.key);
                cmd.arg(&*ticket.name);
                if !cooldown.is_zero() {
                    cmd.arg("").arg(millis(*cooldown));
                }
                cmd
            }
            Self::Disown(grant) => {
                let mut cmd = names.call_on(&scripts::RELEASE, &grant.owner, by_text);
                cmd.arg(&*grant.name);
                cmd
            }
            Self::Renew(ticket) | Self::Pass { ticket, .. } => renew(ticket, ticket.terms.ttl),
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
            Self::Step(step) => step.encode(names, by_text),
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

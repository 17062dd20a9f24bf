//! Calls as commands.

use std::time::Duration;

use redis::Cmd;

use super::inspection::{Fact, Inspect, publish};
use super::names::{KeyNames, Layout, Text};
use super::scripts::{self, Script};
use crate::backend::name::{self, TICKET};
use crate::backend::queue;
use crate::backend::queue::protocol::call::{self, Bearer, Company, mark, millis};
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
            Self::Acquire { bearer, .. } if bearer.terms.adopts.is_some() => &scripts::ADOPT,
            Self::Acquire { .. } => &scripts::ACQUIRE,
            Self::Issue { .. } => &scripts::ISSUE,
            Self::Downgrade(_) => &scripts::DOWNGRADE,
            Self::Ask(_) => &scripts::ASK,
            Self::Leave(_) | Self::Release { .. } | Self::Disown(_) => &scripts::RELEASE,
            // Redis need not know who of a chain holds the lock.
            Self::Renew { .. } | Self::Shorten { .. } | Self::Pass { .. } => &scripts::RENEW,
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
                | Self::Downgrade(_)
                | Self::Disown(_)
                | Self::Step(Inspect::ForceRelease(_))
        )
    }

    /// Whether its answer may say that a lock is ours.
    pub(crate) fn may_win(&self) -> bool {
        matches!(
            self,
            Self::Acquire { .. } | Self::Ask(_) | Self::Renew { .. } | Self::Raise { .. }
        )
    }

    /// The command, with the script's text instead of its hash if `by_text`.
    pub(crate) fn encode(&self, names: &KeyNames, by_text: bool) -> Cmd {
        let mut cmd = self.encode_for(names, by_text);
        let Some(script) = self.script() else {
            return cmd;
        };
        match names.layout {
            Layout::Declared if !self.needs_holders_alone() => {
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

    /// Whether it needs no other keys of the lock than those of its holders, which exist: it is served then also while the
    /// keys of the lock are on their way from one node to another.
    pub(crate) fn needs_holders_alone(&self) -> bool {
        matches!(self, Self::Renew { .. } | Self::Shorten { .. })
    }

    /// What is common to all that set the end of a lease.
    fn renewal(&self, bearer: &Bearer, ttl: Duration, names: &KeyNames, by_text: bool) -> Cmd {
        let key = &bearer.terms.key;
        let mut cmd = if names.is_declared() && self.needs_holders_alone() {
            let mut cmd = scripts::RENEW.call(by_text);
            names.holders(&mut cmd, key, bearer.terms.kind == Kind::Exclusive);
            cmd
        } else {
            names.call(&scripts::RENEW, key, by_text)
        };
        cmd.arg(&*bearer.name)
            // None at all would be refused.
            .arg(millis(ttl).max(1))
            .arg(Text(KindCode::of(&bearer.terms)));
        cmd
    }

    fn encode_for(&self, names: &KeyNames, by_text: bool) -> Cmd {
        let script = |script: &'static Script, key| names.call(script, key, by_text);
        let renew = |bearer: &Bearer, ttl| self.renewal(bearer, ttl, names, by_text);
        match self {
            Self::Acquire { bearer, .. } if bearer.terms.adopts.is_some() => {
                let mut cmd = script(&scripts::ADOPT, &bearer.terms.key);
                add_adoption(&mut cmd, bearer);
                cmd
            }
            Self::Acquire {
                bearer,
                position,
                company,
            } => {
                let mut cmd = script(&scripts::ACQUIRE, &bearer.terms.key);
                add_acquisition(&mut cmd, names, bearer, *position, *company);
                cmd
            }
            Self::Ask(bearers) => {
                let mut cmd = script(&scripts::ASK, &bearers[0].terms.key);
                cmd.arg(&*names.channel);
                for bearer in bearers {
                    add_member(&mut cmd, names, bearer);
                }
                cmd
            }
            Self::Leave(bearer) => {
                let mut cmd = about(script(&scripts::RELEASE, &bearer.terms.key), &bearer.name);
                add_member(&mut cmd, names, bearer);
                cmd
            }
            Self::Release {
                bearer,
                cooldown,
                noted,
                ..
            } => {
                let mut cmd = about(script(&scripts::RELEASE, &bearer.terms.key), &bearer.name);
                match (cooldown.is_zero(), *noted && names.layout.has_notes()) {
                    (true, false) => {}
                    (true, true) => drop(cmd.arg("").arg("").arg("1")),
                    (false, false) => drop(cmd.arg("").arg(millis(*cooldown))),
                    (false, true) => drop(cmd.arg("").arg(millis(*cooldown)).arg("1")),
                }
                cmd
            }
            Self::Issue {
                bearer,
                ticket,
                time,
            } => {
                let mut cmd = about(script(&scripts::ISSUE, &bearer.terms.key), &bearer.name);
                cmd.arg(name::of_ticket(*ticket, &bearer.name))
                    .arg(millis(*time).max(1));
                cmd
            }
            Self::Downgrade(bearer) => {
                about(script(&scripts::DOWNGRADE, &bearer.terms.key), &bearer.name)
            }
            Self::Disown(grant) => {
                let cmd = names.call_on(&scripts::RELEASE, &grant.owner, by_text);
                about(cmd, &grant.name)
            }
            Self::Renew { bearer, note } => {
                let mut cmd = renew(bearer, bearer.terms.ttl);
                if let Some(note) = note.filter(|_| names.layout.has_notes()) {
                    cmd.arg(note.fence).arg(Text(note.held.as_micros()));
                }
                cmd
            }
            Self::Pass { bearer, .. } => renew(bearer, bearer.terms.ttl),
            Self::Shorten { bearer, left } => renew(bearer, *left),
            Self::Raise { bearer, fence } => {
                let terms = &bearer.terms;
                let mut cmd = script(&scripts::RAISE, &terms.key);
                cmd.arg(&*bearer.name)
                    .arg(millis(terms.ttl))
                    .arg(Text(KindCode::of(terms)))
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
                nested,
            } => {
                let message = Message::Told {
                    token: *token,
                    fence: *fence,
                    held: *held,
                    followers: *followers,
                    nested: nested.to_vec(),
                };
                publish(channel, &message)
            }
        }
    }
}

/// A call about the acquisition of this name.
fn about(mut cmd: Cmd, name: &str) -> Cmd {
    cmd.arg(name);
    cmd
}

/// What `acquire` takes; what says nothing at the end is left out.
fn add_acquisition(
    cmd: &mut Cmd,
    names: &KeyNames,
    bearer: &Bearer,
    position: Option<u64>,
    company: Company,
) {
    let terms = &bearer.terms;
    let channel = if terms.wait.is_try() {
        ""
    } else {
        &*names.channel
    };
    cmd.arg(&*bearer.name).arg(millis(terms.ttl)).arg(channel);
    let most = terms.max_waiters;
    let has_more = position.is_some() || most.is_some();
    if terms.kind != Kind::Exclusive || company != Company::Unsaid || has_more {
        let (kind, mark) = (KindCode::of(terms), mark(company));
        cmd.arg(Text(format_args!("{kind}{mark}")));
    }
    match (position, most) {
        (Some(position), _) => cmd.arg(position),
        (None, Some(most)) => cmd.arg("").arg(most),
        (None, None) => cmd,
    };
}

/// What `adopt` takes.
fn add_adoption(cmd: &mut Cmd, bearer: &Bearer) {
    let terms = &bearer.terms;
    cmd.arg(&*bearer.name)
        .arg(millis(terms.ttl))
        .arg(Text(KindCode::of(terms)));
    if let Some(ticket) = terms.ticket() {
        cmd.arg(Text(format_args!("{TICKET}{ticket}")));
    }
}

/// The member that stands for a bearer in the queue.
fn add_member(cmd: &mut Cmd, names: &KeyNames, bearer: &Bearer) {
    let (terms, channel) = (&*bearer.terms, &names.channel);
    let (kind, ttl, name) = (KindCode::of(terms), millis(terms.ttl), &bearer.name);
    cmd.arg(Text(format_args!("{kind}:{ttl}:{channel}\n{name}")));
}

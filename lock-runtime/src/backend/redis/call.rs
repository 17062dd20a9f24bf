//! The calls of scripts, as values and as commands.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::Cmd;

use super::scripts::{self, Script};
use crate::clock::Moment;
use crate::key::LockKey;
use crate::request::Terms;

/// Names one acquisition on the server: 128 bits from the operating system, so
/// that nobody else ever has the same. Each stands in a queue at most once.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Token(u128);

impl Token {
    /// A fresh token.
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(u128::from_be_bytes(bytes)))
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let number = u128::from_str_radix(text, 16).ok()?;
        (text.len() == 32).then_some(Self(number))
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An acquisition under the token that it has at the moment.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    pub(crate) terms: Arc<Terms>,
    pub(crate) token: Token,
}

/// One call of a script.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Acquire {
        ticket: Ticket,
        /// The place in line of an earlier token of the same waiter.
        place: Option<u64>,
    },
    /// All tickets are of one key.
    Ask(Vec<Ticket>),
    Leave(Ticket),
    Renew(Ticket),
    Release(Ticket),
    /// Releases a grant that nobody here knows, by the owner key's full name.
    Disown {
        owner: Box<str>,
        token: Token,
    },
}

/// A call and the moment before it was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) call: Call,
    pub(crate) at: Moment,
}

/// The names of the keys and the channel, as the scripts expect them.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) prefix: Box<str>,
    /// Where this connection hears of its grants.
    pub(crate) channel: Box<str>,
}

impl Names {
    /// The name of a connection is random, never made of host and process: a
    /// clone of a machine would share it.
    pub(crate) fn new(prefix: &str) -> Result<Self, getrandom::Error> {
        Ok(Self {
            prefix: prefix.into(),
            channel: format!("{prefix}:grant:{}", Token::new()?).into(),
        })
    }

    pub(crate) fn fence(&self) -> String {
        format!("{}:fence", self.prefix)
    }

    fn owner(&self, key: &LockKey) -> String {
        format!("{}:{{{key}}}", self.prefix)
    }

    fn member(&self, ticket: &Ticket) -> String {
        let ttl = ticket.terms.ttl.as_millis();
        format!("{}:x:{ttl}:{}", ticket.token, self.channel)
    }

    fn script(&self, script: &Script, owner: &str, by_text: bool) -> Cmd {
        let mut cmd = script.call(by_text);
        cmd.arg(4)
            .arg(owner)
            .arg(format!("{owner}:q"))
            .arg(format!("{owner}:s"))
            .arg(self.fence());
        cmd
    }

    fn release(&self, owner: &str, token: Token, member: &str, by_text: bool) -> Cmd {
        let mut cmd = self.script(&scripts::RELEASE, owner, by_text);
        cmd.arg(token.to_string()).arg(member);
        cmd
    }
}

impl Call {
    /// The script that it calls.
    pub(crate) fn script(&self) -> &'static Script {
        match self {
            Self::Acquire { .. } => &scripts::ACQUIRE,
            Self::Ask(_) => &scripts::ASK,
            Self::Leave(_) | Self::Release(_) | Self::Disown { .. } => &scripts::RELEASE,
            Self::Renew(_) => &scripts::RENEW,
        }
    }

    /// How long its answer may take.
    pub(crate) fn timeout(&self) -> Duration {
        match self {
            Self::Acquire { ticket, .. }
            | Self::Leave(ticket)
            | Self::Renew(ticket)
            | Self::Release(ticket) => ticket.terms.call_timeout(),
            Self::Ask(tickets) => tickets
                .iter()
                .map(|ticket| ticket.terms.call_timeout())
                .min()
                .unwrap_or(Duration::from_secs(1)),
            Self::Disown { .. } => Duration::from_secs(1),
        }
    }

    /// The command, with the script's text instead of its hash where `by_text`.
    pub(crate) fn encode(&self, names: &Names, by_text: bool) -> Cmd {
        match self {
            Self::Acquire { ticket, place } => {
                let terms = &ticket.terms;
                let mut cmd = names.script(&scripts::ACQUIRE, &names.owner(&terms.key), by_text);
                cmd.arg(ticket.token.to_string())
                    .arg(millis(terms.ttl))
                    .arg(&*names.channel)
                    .arg(u8::from(!terms.wait.is_try()))
                    .arg(place.map_or_else(String::new, |place| place.to_string()));
                cmd
            }
            Self::Ask(tickets) => {
                let owner = names.owner(&tickets[0].terms.key);
                let mut cmd = names.script(&scripts::ASK, &owner, by_text);
                cmd.arg(&*names.channel);
                for ticket in tickets {
                    cmd.arg(names.member(ticket));
                }
                cmd
            }
            Self::Leave(ticket) => {
                let owner = names.owner(&ticket.terms.key);
                names.release(&owner, ticket.token, &names.member(ticket), by_text)
            }
            Self::Release(ticket) => {
                let owner = names.owner(&ticket.terms.key);
                names.release(&owner, ticket.token, "", by_text)
            }
            Self::Disown { owner, token } => names.release(owner, *token, "", by_text),
            Self::Renew(ticket) => {
                let mut cmd = scripts::RENEW.call(by_text);
                cmd.arg(1)
                    .arg(names.owner(&ticket.terms.key))
                    .arg(ticket.token.to_string())
                    .arg(millis(ticket.terms.ttl));
                cmd
            }
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

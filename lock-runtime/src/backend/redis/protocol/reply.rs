//! Replies of scripts, as values.

use std::borrow::Cow;

use redis::{FromRedisValue as _, Value};

use super::call::{Call, Ticket};
use super::kind;
use super::line::Line;
pub(crate) use super::trouble::{IN_CLUSTER, ServerSaid, Trouble, is_for_good};
use crate::backend::token::Token;
use crate::types::kind::Kind;

/// What a script answered.
#[derive(Debug)]
pub(crate) enum Reply {
    Granted {
        fence: u64,
    },
    Waiting {
        place: u64,
        line: Line,
    },
    Busy {
        line: Line,
    },
    /// Held with so many permits.
    Differs {
        permits: u32,
    },
    Gone,
    Asked {
        line: Line,
        standings: Vec<Standing>,
    },
    Ours(bool),
    /// For inspections, which read it themselves.
    Raw(Value),
}

/// Where one of the tokens in an `Ask` stands.
#[derive(Debug)]
pub(crate) enum Standing {
    Granted { fence: u64 },
    Waiting,
    Gone,
}

impl Call {
    /// Whether this answer says that a lock is ours.
    pub(crate) fn is_held_by(&self, reply: &Reply) -> bool {
        match (self, reply) {
            (Self::Acquire { .. }, Reply::Granted { .. }) | (Self::Renew(_), Reply::Ours(true)) => {
                true
            }
            (Self::Ask(_), Reply::Asked { standings, .. }) => {
                let granted = |it: &Standing| matches!(it, Standing::Granted { .. });
                standings.iter().any(granted)
            }
            _ => false,
        }
    }

    /// Reads the answer. `None` if it belongs to another call: the replies of the
    /// connection have shifted, and none of them can be trusted.
    pub(crate) fn decode(&self, value: Value) -> Option<Result<Reply, Trouble>> {
        if let Value::ServerError(error) = value {
            return Some(Err(Trouble::from_server(&error)));
        }
        if let Self::Inspect(..) | Self::Report { .. } | Self::Topology = self {
            return Some(Ok(Reply::Raw(value)));
        }
        match (self, &value) {
            (Self::Acquire { ticket, .. }, Value::Array(items)) => not_granted(items, ticket.token),
            (Self::Acquire { ticket, .. }, value) => granted(value, &ticket.name),
            (Self::Ask(tickets), Value::Array(items)) => asked(items, tickets),
            (
                Self::Leave(ticket)
                | Self::Renew(ticket)
                | Self::Raise { ticket, .. }
                | Self::Release { ticket, .. }
                | Self::Shorten { ticket, .. },
                value,
            ) => ours(value, &ticket.name),
            (Self::Disown(grant), value) => ours(value, &grant.name),
            _ => None,
        }
        .map(Ok)
    }
}

fn granted(value: &Value, name: &str) -> Option<Reply> {
    let text = text(value)?;
    let fence = text.strip_prefix(name)?.strip_prefix('\n')?;
    Some(Reply::Granted {
        fence: fence.parse().ok()?,
    })
}

fn not_granted(items: &[Value], expected: Token) -> Option<Reply> {
    let (token, status, rest) = standing(items)?;
    if token != expected {
        return None;
    }
    match (&*status, rest) {
        ("waiting", [place, left, owner, crowd @ ..]) => Some(Reply::Waiting {
            place: number(place)?,
            line: Line::read(left, text(owner)?, crowd)?,
        }),
        ("busy", [_, left, owner, crowd @ ..]) => Some(Reply::Busy {
            line: Line::read(left, text(owner)?, crowd)?,
        }),
        ("differs", [kind]) => Some(Reply::Differs {
            permits: match kind::parse(&text(kind)?)? {
                Kind::Permits(permits) => permits,
                Kind::Exclusive | Kind::Read => return None,
            },
        }),
        ("gone", []) => Some(Reply::Gone),
        _ => None,
    }
}

fn asked(items: &[Value], tickets: &[Ticket]) -> Option<Reply> {
    let [left, owner, rest @ ..] = items else {
        return None;
    };
    let (answers, crowd) = rest.split_at_checked(tickets.len())?;
    let mut standings = Vec::with_capacity(answers.len());
    for (answer, ticket) in answers.iter().zip(tickets) {
        let Value::Array(answer) = answer else {
            return None;
        };
        let (token, status, rest) = standing(answer)?;
        if token != ticket.token {
            return None;
        }
        standings.push(match (&*status, rest) {
            ("granted", [fence]) => Standing::Granted {
                fence: number(fence)?,
            },
            ("waiting", []) => Standing::Waiting,
            ("gone", []) => Standing::Gone,
            _ => return None,
        });
    }
    let line = Line::read(left, text(owner)?, crowd)?;
    Some(Reply::Asked { line, standings })
}

fn ours(value: &Value, name: &str) -> Option<Reply> {
    let text = text(value)?;
    let ours = text == name;
    (ours || text.strip_prefix('-') == Some(name)).then_some(Reply::Ours(ours))
}

fn standing(items: &[Value]) -> Option<(Token, Cow<'_, str>, &[Value])> {
    let [token, status, rest @ ..] = items else {
        return None;
    };
    Some((Token::parse(&text(token)?)?, text(status)?, rest))
}

/// The text of a value, which of a foreign client need not be UTF-8.
pub(crate) fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::BulkString(bytes) => Some(match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => String::from_utf8_lossy(bytes),
        }),
        Value::SimpleString(text) => Some(text.into()),
        _ => None,
    }
}

pub(crate) fn number(value: &Value) -> Option<u64> {
    u64::from_redis_value_ref(value).ok()
}

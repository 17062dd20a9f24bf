//! Replies of scripts, as values.

use std::borrow::Cow;
use std::time::Duration;

use redis::{FromRedisValue as _, Value};

use super::call::Call;
use super::inspection::Inspect;
use super::slot::SLOTS;
use crate::backend::queue::protocol::ahead::Ahead;
use crate::backend::queue::protocol::call::Bearer;
use crate::backend::queue::protocol::reply::{self, Standing};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::token::Token;
use crate::types::crowd::Crowd;

/// The answer of a script.
pub(crate) type Reply = reply::Reply<Inspect>;

impl Call {
    /// Reads the answer. `None` if it belongs to another call: the replies of the
    /// connection have shifted, and none of them can be trusted.
    pub(crate) fn decode(&self, value: Value) -> Option<Result<Reply, Trouble>> {
        if let Value::ServerError(error) = value {
            return Some(Err(Trouble::from_server(&error)));
        }
        if let Self::Step(_) | Self::Report { .. } = self {
            return Some(Ok(Reply::Step(value)));
        }
        match (self, &value) {
            (Self::Acquire { bearer, .. }, Value::Array(items)) => not_granted(items, bearer.token),
            (Self::Acquire { bearer, .. }, value) => granted(value, &bearer.name),
            (Self::Ask(bearers), Value::Array(items)) => asked(items, bearers),
            (
                Self::Leave(bearer)
                | Self::Renew { bearer, .. }
                | Self::Pass { bearer, .. }
                | Self::Raise { bearer, .. }
                | Self::Release { bearer, .. }
                | Self::Issue { bearer, .. }
                | Self::Downgrade(bearer)
                | Self::Shorten { bearer, .. },
                value,
            ) => ours(value, &bearer.name),
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
        ("waiting", [position, left, owner, crowd @ ..]) => Some(Reply::Waiting {
            position: number(position)?,
            ahead: ahead(left, text(owner)?, crowd)?,
        }),
        ("taken", [left]) => Some(Reply::Taken {
            left: Duration::from_millis(number(left)?),
        }),
        ("busy", [_, left, owner, crowd @ ..]) => Some(Reply::Busy {
            ahead: ahead(left, text(owner)?, crowd)?,
        }),
        ("gone", []) => Some(Reply::Gone),
        ("no ticket", []) => Some(Reply::NoTicket),
        _ => None,
    }
}

fn asked(items: &[Value], bearers: &[Bearer]) -> Option<Reply> {
    let [left, owner, rest @ ..] = items else {
        return None;
    };
    let (answers, crowd) = rest.split_at_checked(bearers.len())?;
    let mut standings = Vec::with_capacity(answers.len());
    for (answer, bearer) in answers.iter().zip(bearers) {
        let Value::Array(answer) = answer else {
            return None;
        };
        let (token, status, rest) = standing(answer)?;
        if token != bearer.token {
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
    let ahead = ahead(left, text(owner)?, crowd)?;
    Some(Reply::Asked { ahead, standings })
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

/// The number of a slot.
pub(crate) fn slot(value: &Value) -> Option<u16> {
    let slot = u16::try_from(number(value)?).ok()?;
    (slot < SLOTS).then_some(slot)
}

/// The acquisitions ahead of a caller that does not get the lock.
fn ahead(left: &Value, owner: Cow<'_, str>, crowd: &[Value]) -> Option<Ahead> {
    let left = match left {
        Value::Int(-1) => None,
        // -2: there is no owner yet, since the head of the queue is dead and the
        // script has skipped as many as it may.
        Value::Int(left) => Some(millis(*left)),
        _ => return None,
    };
    Some(Ahead {
        owner: owner.into(),
        left,
        crowd: self::crowd(crowd),
        before: Some(0),
    })
}

/// No waiters if the answer does not count them; their longest wait, only if it has that.
fn crowd(items: &[Value]) -> Crowd {
    let number = |at: usize| match items.get(at) {
        Some(Value::Int(number)) => *number,
        _ => 0,
    };
    Crowd {
        waiting: u32::try_from(number(0)).unwrap_or(0),
        longest: millis(number(1)),
        ..Crowd::default()
    }
}

/// A time below zero is one that the server's clock has gone back by.
fn millis(count: i64) -> Duration {
    Duration::from_millis(u64::try_from(count).unwrap_or(0))
}

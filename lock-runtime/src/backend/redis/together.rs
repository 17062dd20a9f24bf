//! Calls of the common form that go to the server in one, as far as they stand
//! side by side: their order is kept.

use redis::{Cmd, Value};

use super::call::{Call, Names, Sent, Text, Ticket, millis};
use super::reply::{Reply, Trouble, text};
use super::scripts::{self, Script};
use crate::terms::Kind;

/// How many at the most: the server does nothing else meanwhile.
const MOST: usize = 64;

/// What of a call differs from one to the next.
enum What {
    Acquire,
    Renew,
    Release,
}

/// The first of these calls and those behind it that go in one with it.
pub(super) fn next(calls: &[Sent]) -> &[Sent] {
    let common = calls.iter().take(MOST);
    let count = common.take_while(|it| common_form(&it.call).is_some());
    &calls[..count.count().max(1).min(calls.len())]
}

/// The script that they call, if they call one.
pub(super) fn script(calls: &[Sent]) -> Option<&'static Script> {
    match calls {
        [one] => one.call.script(),
        _ => Some(&scripts::MANY),
    }
}

fn common_form(call: &Call) -> Option<(What, &Ticket)> {
    let (what, ticket) = match call {
        Call::Acquire {
            ticket,
            place: None,
        } if !ticket.terms.wait.is_try() => (What::Acquire, ticket),
        Call::Renew(ticket) => (What::Renew, ticket),
        Call::Release { ticket, rest, .. } if rest.is_zero() => (What::Release, ticket),
        _ => return None,
    };
    (ticket.terms.kind == Kind::Exclusive).then_some((what, ticket))
}

/// One command for all of these, with the script's text instead of its hash
/// where `by_text`.
pub(super) fn encode(calls: &[Sent], names: &Names, by_text: bool) -> Cmd {
    if let [one] = calls {
        return one.call.encode(names, by_text);
    }
    let mut cmd = scripts::MANY.call(by_text);
    cmd.arg(calls.len() + 1).arg(&*names.fence);
    for (_, ticket) in all(calls) {
        names.owner(&mut cmd, &ticket.terms.key);
    }
    cmd.arg(&*names.channel);
    for (what, ticket) in all(calls) {
        let ttl = millis(ticket.terms.ttl);
        cmd.arg(&*ticket.name);
        match what {
            What::Acquire => cmd.arg(ttl),
            What::Renew => cmd.arg(Text(format_args!("={ttl}"))),
            What::Release => cmd.arg(""),
        };
    }
    cmd
}

fn all(calls: &[Sent]) -> impl Iterator<Item = (What, &Ticket)> {
    calls.iter().filter_map(|it| common_form(&it.call))
}

/// Reads the answer to each. `None` where it is not one to these calls: the
/// replies of the connection have shifted, and none of them can be trusted.
pub(super) fn decode(calls: &[Sent], value: Value) -> Option<Vec<Result<Reply, Trouble>>> {
    if let [one] = calls {
        return Some(vec![one.call.decode(value)?]);
    }
    let values = match value {
        Value::Array(values) if values.len() == calls.len() + 1 => values,
        Value::ServerError(error) => {
            let trouble = Trouble::from_server(&error);
            return Some(calls.iter().map(|_| Err(trouble.clone())).collect());
        }
        _ => return None,
    };
    let mut values = values.into_iter();
    let (_, first) = all(calls).next()?;
    if text(&values.next()?)? != *first.name {
        return None;
    }
    calls.iter().zip(values).map(decode_one).collect()
}

fn decode_one((sent, value): (&Sent, Value)) -> Option<Result<Reply, Trouble>> {
    match (&sent.call, &value) {
        (Call::Acquire { .. }, Value::Int(fence)) => Some(Ok(Reply::Granted {
            fence: u64::try_from(*fence).ok()?,
        })),
        (_, Value::Int(ours @ (0 | 1))) => Some(Ok(Reply::Ours(*ours == 1))),
        _ => sent.call.decode(value),
    }
}

//! Batches: neighbouring calls of the most common form go to the server as one call of
//! a script. The order of calls is kept.

use redis::{Cmd, Pipeline, Value};

use super::call::{Call, Sent};
use super::names::{KeyNames, Text, Together};
use super::reply::{Reply, text};
use super::scripts::{self, Script};
use crate::backend::queue::protocol::call::{Bearer, Company, Note, mark, millis};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::types::kind::Kind;

/// The largest batch: the server does nothing else meanwhile, and larger ones were no faster.
const MOST: usize = 64;

/// The operation of a call in a batch.
enum What {
    Acquire(Company, Option<u64>),
    Renew(Option<Note>),
    Release,
    Leave,
}

/// The next batch: the first of these calls, and those behind it that can go with it.
pub(crate) fn next(calls: &[Sent], together: Together) -> &[Sent] {
    let most = if together == Together::None { 1 } else { MOST };
    let key = calls.first().and_then(|it| it.call.key());
    let joins = |it: &&Sent| match (common_form(&it.call), together) {
        // A renewal is served also where the other keys cannot be.
        (None, _) | (Some((What::Renew(_), _)), Together::OfOneLock) => false,
        (Some(_), Together::OfOneLock) => !it.route.asking && it.call.key() == key,
        (Some(_), Together::All | Together::None) => true,
    };
    let count = calls.iter().take(most).take_while(joins).count();
    &calls[..count.max(1).min(calls.len())]
}

/// The script that they call, if they call one.
pub(crate) fn script(calls: &[Sent], names: &KeyNames) -> Option<&'static Script> {
    match calls {
        [one] => one.call.script().map(|it| names.script(it)),
        _ => Some(names.script(&scripts::MANY)),
    }
}

fn common_form(call: &Call) -> Option<(What, &Bearer)> {
    let (what, bearer) = match call {
        Call::Acquire {
            bearer,
            position,
            company,
        } if bearer.terms.simply_waits() => (What::Acquire(*company, *position), bearer),
        Call::Renew { bearer, note } => (What::Renew(*note), bearer),
        Call::Release {
            bearer,
            cooldown,
            noted: false,
            ..
        } if cooldown.is_zero() => (What::Release, bearer),
        Call::Leave(bearer) => (What::Leave, bearer),
        _ => return None,
    };
    (bearer.terms.kind == Kind::Exclusive).then_some((what, bearer))
}

/// The pipeline for these calls, and how many commands at its start are for none of
/// them. Scripts that the server has forgotten are sent with their text.
pub(crate) fn pipeline(
    calls: &[Sent],
    names: &KeyNames,
    forgotten: &[&'static Script],
    together: Together,
) -> (Pipeline, usize) {
    let mut pipeline = Pipeline::with_capacity(calls.len() + 1);
    let handed_over = calls.iter().find(|it| it.call.hands_over());
    let handed_over = handed_over.and_then(|it| it.call.key());
    if let Some(key) = handed_over {
        // The server writes to its clients in the reverse order of the first answer
        // to each, so the next holder hears of its grant before we get our answer.
        let mut exists = redis::cmd("EXISTS");
        names.owner(&mut exists, key);
        pipeline.add_command(exists);
    }
    let mut rest = calls;
    while !rest.is_empty() {
        let calls = next(rest, together);
        let is_called =
            |it: &&Script| script(calls, names).is_some_and(|called| std::ptr::eq(called, *it));
        let by_text = forgotten.iter().any(is_called);
        if calls[0].route.asking {
            pipeline.cmd("ASKING");
        }
        pipeline.add_command(encode(calls, names, by_text));
        rest = &rest[calls.len()..];
    }
    (pipeline, usize::from(handed_over.is_some()))
}

/// Whether the server has refused a whole batch, perhaps because of one call in it:
/// it checks the rights to all keys before it runs a script.
pub(crate) fn is_refused(calls: &[Sent], value: &Value) -> bool {
    let Value::ServerError(error) = value else {
        return false;
    };
    calls.len() > 1 && matches!(Trouble::from_server(error), Trouble::Never(_))
}

/// One command for a batch, with the script's text instead of its hash if `by_text`.
fn encode(calls: &[Sent], names: &KeyNames, by_text: bool) -> Cmd {
    if let [one] = calls {
        return one.call.encode(names, by_text);
    }
    let mut cmd = match calls[0].call.key() {
        Some(key) if names.is_declared() => names.call(&scripts::MANY, key, by_text),
        _ => {
            let mut cmd = scripts::MANY.call(by_text);
            cmd.arg(calls.len() + 1).arg(&*names.fence);
            for (_, bearer) in all(calls) {
                names.owner(&mut cmd, &bearer.terms.key);
            }
            cmd
        }
    };
    let acquires = all(calls).filter(|(what, _)| matches!(what, What::Acquire(..)));
    cmd.arg(&*names.channel).arg(acquires.count());
    for (what, bearer) in all(calls) {
        let ttl = millis(bearer.terms.ttl);
        cmd.arg(&*bearer.name);
        match what {
            What::Acquire(company, None) => cmd.arg(Text(format_args!("{}{ttl}", mark(company)))),
            What::Acquire(company, Some(position)) => {
                cmd.arg(Text(format_args!("{}{ttl}@{position}", mark(company))))
            }
            What::Renew(None) => cmd.arg(Text(format_args!("={ttl}"))),
            What::Renew(Some(Note { fence, held })) => {
                let held = held.as_micros();
                cmd.arg(Text(format_args!("={ttl} {fence} {held}")))
            }
            What::Release => cmd.arg(""),
            What::Leave => cmd.arg(Text(format_args!("<{ttl}"))),
        };
    }
    if names.is_declared() {
        cmd.arg(&*names.at);
    }
    cmd
}

fn all(calls: &[Sent]) -> impl Iterator<Item = (What, &Bearer)> {
    calls.iter().filter_map(|it| common_form(&it.call))
}

/// Reads the answer to each call. `None` if the reply belongs to other calls: the
/// replies of the connection have shifted, and none of them can be trusted.
pub(crate) fn decode(calls: &[Sent], value: Value) -> Option<Vec<Result<Reply, Trouble>>> {
    if let [one] = calls {
        return Some(vec![one.call.decode(value)?]);
    }
    let values = match value {
        Value::Array(values) if values.len() == calls.len() + 1 => values,
        Value::ServerError(error) => {
            let trouble = match Trouble::from_server(&error) {
                Trouble::Never(_) => Trouble::NotRun,
                trouble => trouble,
            };
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::backend::redis::protocol::inspection::Route;
    use crate::backend::token::Token;
    use crate::base::clock::Moment;
    use crate::types::key::LockKey;
    use crate::types::terms::{LeaseId, Terms, Wait};

    fn bearer(number: u64, change: impl FnOnce(&mut Terms)) -> Bearer {
        let mut terms = Terms::of(LeaseId(number), "k", Duration::from_secs(10));
        change(&mut terms);
        Bearer::new(Token::new().expect("random numbers"), terms.into())
    }

    fn acquire(bearer: Bearer, position: Option<u64>) -> Sent {
        let call = Call::Acquire {
            bearer,
            position,
            company: Company::Unsaid,
        };
        Sent::new(call, Moment::from_nanos(1))
    }

    fn renew(bearer: Bearer) -> Call {
        Call::Renew { bearer, note: None }
    }

    fn leave(bearer: Bearer) -> Sent {
        Sent::new(Call::Leave(bearer), Moment::from_nanos(1))
    }

    fn common() -> Sent {
        acquire(bearer(1, |_| {}), None)
    }

    #[test]
    fn only_neighbours_of_the_common_form_go_together() {
        let calls = [
            common(),
            common(),
            acquire(bearer(1, |it| it.kind = Kind::Read), None),
            acquire(bearer(1, |it| it.wait = Wait::AtMost(Duration::ZERO)), None),
            acquire(bearer(1, |_| {}), Some(7)),
            leave(bearer(1, |_| {})),
            leave(bearer(1, |it| it.kind = Kind::Read)),
            common(),
        ];
        let mut rest = &calls[..];
        let mut counts = Vec::new();
        while !rest.is_empty() {
            counts.push(next(rest, Together::All).len());
            rest = &rest[next(rest, Together::All).len()..];
        }
        assert_eq!(counts, [2, 1, 1, 2, 1, 1]);
        assert_eq!(next(&[], Together::All).len(), 0);
        let crowd: Vec<_> = (0..2 * MOST).map(|_| common()).collect();
        assert_eq!(next(&crowd, Together::All).len(), MOST);
        assert_eq!(next(&crowd, Together::None).len(), 1);
    }

    #[test]
    fn where_keys_are_declared_those_of_one_lock_go_together_and_renewals_alone() {
        let renewal = |number| Sent::new(renew(bearer(number, |_| {})), Moment::from_nanos(1));
        let asking = Sent {
            route: Route {
                asking: true,
                ..Route::default()
            },
            ..common()
        };
        let calls = [
            common(),
            common(),
            acquire(bearer(1, |it| it.key = LockKey::of("other")), None),
            common(),
            renewal(1),
            common(),
            asking,
            common(),
        ];
        let mut rest = &calls[..];
        let mut counts = Vec::new();
        while !rest.is_empty() {
            counts.push(next(rest, Together::OfOneLock).len());
            rest = &rest[next(rest, Together::OfOneLock).len()..];
        }
        assert_eq!(counts, [2, 1, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn answers_to_other_calls_are_not_taken_for_ours() {
        let calls = [common(), common()];
        let name = |sent: &Sent| match &sent.call {
            Call::Acquire { bearer, .. } => Value::BulkString(bearer.name.as_bytes().into()),
            _ => unreachable!("they acquire"),
        };
        let array = |first, rest: &[Value]| {
            let items = std::iter::once(first).chain(rest.iter().cloned());
            Value::Array(items.collect())
        };
        let fences = [Value::Int(8), Value::Int(9)];
        let ours = decode(&calls, array(name(&calls[0]), &fences));
        let granted = ours.expect("they are ours").into_iter().map(|it| match it {
            Ok(Reply::Granted { fence }) => fence,
            other => panic!("{other:?}"),
        });
        assert_eq!(granted.collect::<Vec<_>>(), [8, 9]);
        assert!(decode(&calls, array(name(&calls[1]), &fences)).is_none());
        assert!(decode(&calls, array(name(&calls[0]), &fences[1..])).is_none());
        assert!(decode(&calls, Value::Int(8)).is_none());
        let foreign = array(name(&calls[0]), &[Value::Int(8), name(&calls[0])]);
        assert!(decode(&calls, foreign).is_none());
    }

    #[test]
    fn answers_may_end_with_less_and_with_more_than_we_know() {
        let calls = [common()];
        let Call::Acquire { bearer, .. } = &calls[0].call else {
            unreachable!("it acquires");
        };
        let text = |text: &str| Value::BulkString(text.as_bytes().into());
        let name = text(&bearer.name);
        let asks = [Sent {
            call: Call::Ask(vec![bearer.clone()]),
            ..acquire(bearer.clone(), None)
        }];
        let crowd = [Value::Int(4), Value::Int(80), text("more")];
        for (end, waiters) in [(0, 0), (1, 4), (2, 4), (3, 4)] {
            let line = [text("7"), Value::Int(9), text("holder")];
            let waiting = [&[name.clone(), text("waiting")], &line[..], &crowd[..end]].concat();
            match decode(&calls, Value::Array(waiting)).as_deref() {
                Some([Ok(Reply::Waiting { ahead, .. })]) => {
                    assert_eq!(ahead.crowd.waiting, waiters);
                }
                other => panic!("{other:?}"),
            }
            let answer = Value::Array(vec![name.clone(), text("waiting")]);
            let asked = [&line[1..], &[answer], &crowd[..end]].concat();
            match decode(&asks, Value::Array(asked)).as_deref() {
                Some([Ok(Reply::Asked { ahead, standings })]) => {
                    assert_eq!((ahead.crowd.waiting, standings.len()), (waiters, 1));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

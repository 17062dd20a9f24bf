//! Looking at locks from outside: who holds them, which there are, and taking
//! them away.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use redis::Value;

use crate::backend::redis::call::{Call, Inspect};
use crate::backend::redis::reply::{Reply, Trouble, number, text};
use crate::backend::redis::token::Token;
use crate::clock::Moment;
use crate::driver::Answer;
use crate::error::LockError;
use crate::guard::FencingToken;
use crate::holder::{Holder, Status};
use crate::key::LockKey;
use crate::query::{Pattern, Query};

/// How long holders have to tell about their locks. Whoever is stopped does not,
/// and is known by what stands on the server.
const PATIENCE: Duration = Duration::from_millis(300);

/// The questions that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct Inspections {
    next: u64,
    open: BTreeMap<u64, Inspection>,
}

#[derive(Debug)]
enum Inspection {
    Status {
        answer: Answer<Status>,
        status: Status,
        /// When its answer is due, once the holders were asked.
        ends: Option<Moment>,
    },
    List {
        answer: Answer<Vec<LockKey>>,
        pattern: Pattern,
        found: BTreeSet<LockKey>,
    },
    ForceRelease {
        answer: Answer<usize>,
        count: usize,
    },
}

impl Inspections {
    /// The first call of a question.
    pub(super) fn begin(&mut self, query: Query) -> Call {
        let (inspection, step) = match query {
            Query::Status { key, answer } => {
                let status = Status {
                    key: key.clone(),
                    holders: Vec::new(),
                    waiters: 0,
                };
                let inspection = Inspection::Status {
                    answer,
                    status,
                    ends: None,
                };
                (inspection, Inspect::Status(key))
            }
            Query::List { pattern, answer } => {
                let found = BTreeSet::new();
                let glob = pattern.glob().into();
                let scan = Inspect::Scan { glob, cursor: 0 };
                let inspection = Inspection::List {
                    answer,
                    pattern,
                    found,
                };
                (inspection, scan)
            }
            Query::ForceRelease { key, answer } => (
                Inspection::ForceRelease { answer, count: 0 },
                Inspect::ForceRelease(key),
            ),
        };
        self.next += 1;
        self.open.insert(self.next, inspection);
        Call::Inspect(self.next, step)
    }

    /// What an answer leads to: another call, or the end of the question.
    pub(super) fn replied(
        &mut self,
        now: Moment,
        id: u64,
        step: Inspect,
        result: Result<Reply, Trouble>,
    ) -> Option<Call> {
        let value = match result {
            Ok(Reply::Raw(value)) => Some(value),
            Err(Trouble::NotRun) => return Some(Call::Inspect(id, step)),
            Err(trouble) => {
                if let Some(inspection) = self.open.remove(&id) {
                    inspection.fail(&trouble);
                }
                return None;
            }
            Ok(_) => None,
        };
        let next = match (self.open.get_mut(&id)?, step) {
            (Inspection::Status { status, ends, .. }, Inspect::Status(_)) => {
                *ends = Some(now.after(PATIENCE));
                read_status(value, status).map(|tokens| {
                    (!tokens.is_empty()).then_some(Call::Inspect(id, Inspect::Holders(tokens)))
                })
            }
            (Inspection::Status { .. }, _) => return None,
            (Inspection::List { pattern, found, .. }, Inspect::Scan { glob, .. }) => {
                read_keys(value, pattern, found).map(|cursor| {
                    (cursor != 0).then_some(Call::Inspect(id, Inspect::Scan { glob, cursor }))
                })
            }
            (Inspection::ForceRelease { count, .. }, Inspect::ForceRelease(_)) => {
                read_count(value, count).map(|()| None)
            }
            _ => None,
        };
        match next {
            Some(Some(call)) => return Some(call),
            Some(None) => self.open.remove(&id)?.finish(),
            None => self.open.remove(&id)?.not_understood(),
        }
        None
    }

    /// A holder has told about its lock.
    pub(super) fn told(&mut self, token: Token, fence: u64, held: Duration) {
        let since = SystemTime::now().checked_sub(held);
        let mut complete = Vec::new();
        for (id, inspection) in &mut self.open {
            // One that has no answer yet has no holders either.
            if let Inspection::Status {
                status,
                ends: Some(_),
                ..
            } = inspection
            {
                for holder in &mut status.holders {
                    if Token::parse(&holder.id) == Some(token) {
                        holder.since = since;
                        holder.fence = Some(FencingToken::new(fence));
                    }
                }
                if status
                    .holders
                    .iter()
                    .all(|it| it.resting || it.fence.is_some())
                {
                    complete.push(*id);
                }
            }
        }
        for id in complete {
            if let Some(inspection) = self.open.remove(&id) {
                inspection.finish();
            }
        }
    }

    pub(super) fn next_end(&self) -> Option<Moment> {
        let ends = |inspection: &Inspection| match inspection {
            Inspection::Status { ends, .. } => *ends,
            _ => None,
        };
        self.open.values().filter_map(ends).min()
    }

    /// Answers those whose holders do not tell.
    pub(super) fn tick(&mut self, now: Moment) {
        while self.next_end().is_some_and(|end| end <= now) {
            let due = |inspection: &Inspection| matches!(inspection, Inspection::Status { ends: Some(end), .. } if *end <= now);
            let id = self.open.iter().find(|(_, it)| due(it)).map(|(id, _)| *id);
            if let Some(inspection) = id.and_then(|id| self.open.remove(&id)) {
                inspection.finish();
            }
        }
    }

    pub(super) fn fail_all(&mut self, trouble: &Trouble) {
        for inspection in std::mem::take(&mut self.open).into_values() {
            inspection.fail(trouble);
        }
    }
}

impl Inspection {
    fn finish(self) {
        match self {
            Self::Status { answer, status, .. } => drop(answer.send(Ok(status))),
            Self::List { answer, found, .. } => drop(answer.send(Ok(found.into_iter().collect()))),
            Self::ForceRelease { answer, count } => drop(answer.send(Ok(count))),
        }
    }

    fn fail(self, trouble: &Trouble) {
        let error = LockError::from(trouble.clone());
        match self {
            Self::Status { answer, .. } => drop(answer.send(Err(error))),
            Self::List { answer, .. } => drop(answer.send(Err(error))),
            Self::ForceRelease { answer, .. } => drop(answer.send(Err(error))),
        }
    }

    fn not_understood(self) {
        self.fail(&super::said("the answer is none to what was asked"));
    }
}

/// The tokens of the holders that can tell more.
fn read_status(value: Option<Value>, status: &mut Status) -> Option<Vec<Token>> {
    let Some(Value::Array(items)) = value else {
        return None;
    };
    let (waiters, holders) = items.split_first()?;
    status.waiters = usize::try_from(number(waiters)?).ok()?;
    let mut tokens = Vec::new();
    for pair in holders.chunks_exact(2) {
        let remaining = match pair[1] {
            Value::Int(-1) => None,
            Value::Int(left) => Some(Duration::from_millis(u64::try_from(left).unwrap_or(0))),
            _ => return None,
        };
        let holder = Holder::parse(&text(&pair[0])?, remaining);
        if !holder.resting && holder.process.is_some() {
            tokens.extend(Token::parse(&holder.id));
        }
        status.holders.push(holder);
    }
    Some(tokens)
}

fn read_count(value: Option<Value>, count: &mut usize) -> Option<()> {
    *count = usize::try_from(number(&value?)?).ok()?;
    Some(())
}

/// Adds the locks of one page that match; where the next one begins.
fn read_keys(
    value: Option<Value>,
    pattern: &Pattern,
    found: &mut BTreeSet<LockKey>,
) -> Option<u64> {
    let Some(Value::Array(items)) = value else {
        return None;
    };
    let [cursor, Value::Array(owners)] = &*items else {
        return None;
    };
    for owner in owners {
        let owner = text(owner)?;
        // No prefix has a brace in it.
        let name = owner
            .split_once(":{")
            .and_then(|(_, it)| it.strip_suffix('}'));
        let key = name.map(LockKey::stored);
        found.extend(key.filter(|key| pattern.matches(key)));
    }
    text(cursor)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn what_a_holder_tells_ends_no_question_that_has_no_answer_yet() {
        let mut inspections = Inspections::default();
        let mut ask = || {
            let (answer, answered) = oneshot::channel();
            let key = LockKey::from("k");
            inspections.begin(Query::Status { key, answer });
            answered
        };
        let (mut first, mut second) = (ask(), ask());
        let token = Token::parse(&"7".repeat(32)).expect("a token");
        let name = format!("{token} 1@host");
        let holder = [
            Value::Int(0),
            Value::BulkString(name.into_bytes()),
            Value::Int(900),
        ];
        let now = Moment::from_nanos(1);
        let step = Inspect::Status(LockKey::from("k"));
        let reply = Ok(Reply::Raw(Value::Array(holder.into())));
        assert!(inspections.replied(now, 1, step, reply).is_some());
        inspections.told(token, 9, Duration::ZERO);
        let status = first.try_recv().expect("complete").expect("a status");
        assert_eq!(status.holders[0].fence, Some(FencingToken::new(9)));
        assert!(second.try_recv().is_err(), "nobody has answered it");
    }
}

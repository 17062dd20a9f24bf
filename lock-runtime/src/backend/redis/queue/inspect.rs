//! Inspections: who holds a lock, which locks there are, and taking one away.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, SystemTime};

use redis::Value;

use crate::backend::Outcome;
use crate::backend::name;
use crate::backend::redis::protocol::call::{Call, Inspect};
use crate::backend::redis::protocol::reply::{Reply, Trouble, number, text};
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::vocabulary::error::Cause;
use crate::vocabulary::fence::FencingToken;
use crate::vocabulary::health::Health;
use crate::vocabulary::holder::Status;
use crate::vocabulary::key::LockKey;
use crate::vocabulary::query::{Found, Pattern, Query, QueryId};

/// How long holders have to report about their locks. A stopped holder does not; of it
/// only the entry on the server is known.
const PATIENCE: Duration = Duration::from_millis(300);

/// The queries that are not answered yet, and the answers to the others.
#[derive(Debug, Default)]
pub(super) struct Inspections {
    open: BTreeMap<QueryId, Inspection>,
    answers: VecDeque<Outcome>,
}

#[derive(Debug)]
enum Inspection {
    Status {
        status: Status,
        /// When its answer is due, once the holders were asked.
        ends: Option<Moment>,
    },
    List {
        pattern: Pattern,
        found: BTreeSet<LockKey>,
    },
    ForceRelease(usize),
    Health {
        asked: Moment,
        took: Duration,
    },
}

impl Inspections {
    /// The first call for a query.
    pub(super) fn begin(&mut self, now: Moment, id: QueryId, query: Query) -> Call {
        let (inspection, step) = match query {
            Query::Status(key) => {
                let status = Status {
                    key: key.clone(),
                    holders: Vec::new(),
                    waiters: 0,
                };
                let inspection = Inspection::Status { status, ends: None };
                (inspection, Inspect::Status(key))
            }
            Query::List(pattern) => {
                let glob = glob(&pattern).into();
                let scan = Inspect::Scan { glob, cursor: 0 };
                let found = BTreeSet::new();
                (Inspection::List { pattern, found }, scan)
            }
            Query::ForceRelease(key) => (Inspection::ForceRelease(0), Inspect::ForceRelease(key)),
            Query::Health => {
                let took = Duration::ZERO;
                (Inspection::Health { asked: now, took }, Inspect::Echo)
            }
        };
        self.open.insert(id, inspection);
        Call::Inspect(id, step)
    }

    pub(super) fn next_answer(&mut self) -> Option<Outcome> {
        self.answers.pop_front()
    }

    fn end(&mut self, id: QueryId, result: Result<(), Cause>) {
        if let Some(inspection) = self.open.remove(&id) {
            let result = result.map(|()| inspection.found());
            self.answers.push_back(Outcome::Answered { id, result });
        }
    }

    /// What follows from a reply: another call, or the answer to the query.
    pub(super) fn replied(
        &mut self,
        now: Moment,
        id: QueryId,
        step: Inspect,
        result: Result<Reply, Trouble>,
    ) -> Option<Call> {
        let value = match result {
            Ok(Reply::Raw(value)) => Some(value),
            Err(Trouble::NotRun) => return Some(Call::Inspect(id, step)),
            Err(trouble) => {
                self.end(id, Err(trouble.cause()));
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
            (Inspection::List { pattern, found }, Inspect::Scan { glob, .. }) => {
                read_keys(value, pattern, found).map(|cursor| {
                    (cursor != 0).then_some(Call::Inspect(id, Inspect::Scan { glob, cursor }))
                })
            }
            (Inspection::ForceRelease(count), Inspect::ForceRelease(_)) => {
                read_count(value, count).map(|()| None)
            }
            (Inspection::Health { asked, took }, Inspect::Echo) => {
                *took = now.since(*asked);
                matches!(value, Some(Value::Int(1..))).then_some(None)
            }
            _ => None,
        };
        let result = match next {
            Some(Some(call)) => return Some(call),
            Some(None) => Ok(()),
            None => Err(Trouble::said("the reply did not match its request").cause()),
        };
        self.end(id, result);
        None
    }

    /// A holder has reported about its lock.
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
            self.end(id, Ok(()));
        }
    }

    pub(super) fn next_end(&self) -> Option<Moment> {
        let ends = |inspection: &Inspection| match inspection {
            Inspection::Status { ends, .. } => *ends,
            _ => None,
        };
        self.open.values().filter_map(ends).min()
    }

    /// Answers queries whose holders do not report in time.
    pub(super) fn tick(&mut self, now: Moment) {
        while self.next_end().is_some_and(|end| end <= now) {
            let due = |inspection: &Inspection| matches!(inspection, Inspection::Status { ends: Some(end), .. } if *end <= now);
            let id = self.open.iter().find(|(_, it)| due(it)).map(|(id, _)| *id);
            if let Some(id) = id {
                self.end(id, Ok(()));
            }
        }
    }

    pub(super) fn fail_all(&mut self, trouble: &Trouble) {
        let open: Vec<_> = self.open.keys().copied().collect();
        for id in open {
            self.end(id, Err(trouble.cause()));
        }
    }
}

impl Inspection {
    fn found(self) -> Found {
        match self {
            Self::Status { status, .. } => Found::Status(status),
            Self::List { found, .. } => Found::List(found.into_iter().collect()),
            Self::ForceRelease(count) => Found::ForceRelease(count),
            Self::Health { took, .. } => Found::Health(Health::reached(took)),
        }
    }
}

/// A pattern for Redis that matches everything that this one does, and more: in Redis
/// brackets have a meaning too, and a question mark stands for a byte.
fn glob(pattern: &Pattern) -> String {
    let mut glob = String::new();
    let mut rest = pattern.as_str().chars().peekable();
    while let Some(c) = rest.next() {
        if matches!(c, '[' | ']' | '^' | '\\') {
            glob.push('\\');
        }
        glob.push(c);
        if c == '?' && rest.peek() != Some(&'?') {
            glob.push('*');
        }
    }
    glob
}

/// The tokens of the holders that can report more.
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
        let holder = name::holder(&text(&pair[0])?, remaining);
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

/// Adds the matching locks of one page; returns where the next page begins.
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
        let key = owner
            .split_once(":{")
            .and_then(|(_, it)| it.strip_suffix('}'));
        let key = key.map(LockKey::unchecked);
        found.extend(key.filter(|key| pattern.matches(key)));
    }
    text(cursor)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_holder_tells_ends_no_question_that_has_no_answer_yet() {
        let mut inspections = Inspections::default();
        let now = Moment::from_nanos(1);
        for id in [1, 2] {
            inspections.begin(now, QueryId(id), Query::Status(LockKey::from("k")));
        }
        let token = Token::parse(&"7".repeat(32)).expect("a token");
        let name = format!("{token} 1@host");
        let holder = [
            Value::Int(0),
            Value::BulkString(name.into_bytes()),
            Value::Int(900),
        ];
        let step = Inspect::Status(LockKey::from("k"));
        let reply = Ok(Reply::Raw(Value::Array(holder.into())));
        assert!(inspections.replied(now, QueryId(1), step, reply).is_some());
        inspections.told(token, 9, Duration::ZERO);
        let answer = inspections.next_answer();
        let Some(Outcome::Answered {
            id: QueryId(1),
            result: Ok(Found::Status(status)),
        }) = answer
        else {
            panic!("no status: {answer:?}");
        };
        assert_eq!(status.holders[0].fence, Some(FencingToken::new(9)));
        assert!(
            inspections.next_answer().is_none(),
            "nobody has answered it"
        );
    }
}

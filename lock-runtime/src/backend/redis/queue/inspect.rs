//! Inspections: who holds a lock, which locks there are, and taking one away.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, SystemTime};

use redis::Value;

use super::diagnosis::Diagnosis;
use super::gathering::{Gathering, Part, read_page};
use super::next::Next;
use super::reporting::Reporting;
use crate::backend::Outcome;
use crate::backend::redis::protocol::call::Call;
use crate::backend::redis::protocol::inspection::Inspect;
use crate::backend::redis::protocol::names::Layout;
use crate::backend::redis::protocol::reply::{Reply, Trouble, number};
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::health::Health;
use crate::types::key::LockKey;
use crate::types::query::{Found, Pattern, Query, QueryId};

/// The queries that are not answered yet, and the answers to the others.
#[derive(Debug)]
pub(super) struct Inspections {
    layout: Layout,
    open: BTreeMap<QueryId, Inspection>,
    answers: VecDeque<Outcome>,
}

#[derive(Debug)]
enum Inspection {
    Status(Reporting),
    List {
        pattern: Pattern,
        found: BTreeSet<LockKey>,
    },
    Overview(Gathering),
    Diagnose(Diagnosis),
    ForceRelease(usize),
    Health {
        asked: Moment,
        took: Duration,
    },
}

impl Inspections {
    pub(super) fn new(layout: Layout) -> Self {
        Self {
            layout,
            open: BTreeMap::new(),
            answers: VecDeque::new(),
        }
    }

    /// The first calls for a query.
    pub(super) fn begin(&mut self, now: Moment, id: QueryId, query: Query) -> Vec<Call> {
        let scan = |pattern: &Pattern, lines| Inspect::Scan {
            glob: glob(pattern).into(),
            lines,
            cursor: 0,
        };
        let (inspection, steps) = match query {
            Query::Status(key) => {
                let reporting = Reporting::new(key.clone());
                (Inspection::Status(reporting), vec![Inspect::Status(key)])
            }
            Query::List(pattern) => {
                let steps = vec![scan(&pattern, false)];
                let found = BTreeSet::new();
                (Inspection::List { pattern, found }, steps)
            }
            Query::Overview(pattern) => {
                let mut steps = vec![scan(&pattern, true)];
                if self.layout.has_counter() {
                    // The counter is wanted also where there is no lock.
                    steps.insert(0, Inspect::Overview([].into()));
                }
                let gathering = Gathering::new(pattern, self.layout);
                (Inspection::Overview(gathering), steps)
            }
            Query::Diagnose => {
                let (diagnosis, first) = Diagnosis::begin(now, self.layout);
                (Inspection::Diagnose(diagnosis), vec![first])
            }
            Query::ForceRelease(key) => {
                let steps = vec![Inspect::ForceRelease(key)];
                (Inspection::ForceRelease(0), steps)
            }
            Query::Health => {
                let took = Duration::ZERO;
                let inspection = Inspection::Health { asked: now, took };
                (inspection, vec![Inspect::Echo])
            }
        };
        self.open.insert(id, inspection);
        calls(id, steps)
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

    /// What follows from a reply: more calls, or the answer to the query.
    pub(super) fn replied(
        &mut self,
        now: Moment,
        id: QueryId,
        step: Inspect,
        result: Result<Reply, Trouble>,
    ) -> Vec<Call> {
        let Some(inspection) = self.open.get_mut(&id) else {
            return Vec::new();
        };
        let value = match (result, &mut *inspection) {
            (Ok(Reply::Raw(value)), _) => Some(value),
            (Err(Trouble::NotRun), _) => return vec![Call::Inspect(id, step)],
            // What the server refuses is found, too.
            (Err(trouble), Inspection::Diagnose(diagnosis))
                if !matches!(trouble, Trouble::Unknown(_)) =>
            {
                diagnosis.refused(&step, &trouble);
                None
            }
            (Err(trouble), _) => {
                self.end(id, Err(trouble.cause()));
                return Vec::new();
            }
            (Ok(_), _) => None,
        };
        let next = match (inspection, step) {
            (Inspection::Status(reporting), Inspect::Status(_)) => reporting.read(now, value),
            (Inspection::Status(_), _) => return Vec::new(),
            (Inspection::List { pattern, found }, Inspect::Scan { glob, lines, .. }) => {
                read_keys(value, pattern, found).map(|cursor| match cursor {
                    0 => Next::Answer,
                    cursor => Next::Calls(vec![Inspect::Scan {
                        glob,
                        lines,
                        cursor,
                    }]),
                })
            }
            (Inspection::Overview(gathering), Inspect::Scan { glob, lines, .. }) => {
                value
                    .and_then(|it| gathering.page(&it))
                    .map(|(mut steps, cursor)| {
                        if cursor != 0 {
                            // First, so that the server answers it while we read the facts.
                            steps.insert(
                                0,
                                Inspect::Scan {
                                    glob,
                                    lines,
                                    cursor,
                                },
                            );
                        }
                        gathering.next(steps)
                    })
            }
            (Inspection::Overview(gathering), Inspect::Overview(keys)) => {
                let read = value.and_then(|it| gathering.facts(&keys, &it));
                read.map(|()| gathering.next(Vec::new()))
            }
            (Inspection::Diagnose(diagnosis), step) => diagnosis.learned(now, step, value),
            (Inspection::ForceRelease(count), Inspect::ForceRelease(_)) => {
                read_count(value, count).map(|()| Next::Answer)
            }
            (Inspection::Health { asked, took }, Inspect::Echo) => {
                *took = now.since(*asked);
                matches!(value, Some(Value::Int(1..))).then_some(Next::Answer)
            }
            _ => None,
        };
        let result = match next {
            Some(Next::Calls(steps)) => return calls(id, steps),
            Some(Next::Answer) => Ok(()),
            None => Err(Trouble::said("the reply did not match its request").cause()),
        };
        self.end(id, result);
        Vec::new()
    }

    /// A holder has reported about its lock.
    pub(super) fn told(&mut self, token: Token, fence: u64, held: Duration, followers: usize) {
        let since = SystemTime::now().checked_sub(held);
        let mut complete = Vec::new();
        for (id, inspection) in &mut self.open {
            if let Inspection::Status(reporting) = inspection
                && reporting.told(token, fence, since, followers)
            {
                complete.push(*id);
            }
        }
        for id in complete {
            self.end(id, Ok(()));
        }
    }

    pub(super) fn next_end(&self) -> Option<Moment> {
        self.open.values().filter_map(Inspection::ends).min()
    }

    /// Answers queries whose holders do not report in time.
    pub(super) fn tick(&mut self, now: Moment) {
        let open = self.open.iter();
        let due = open.filter(|(_, it)| it.ends().is_some_and(|ends| ends <= now));
        let due: Vec<_> = due.map(|(id, _)| *id).collect();
        for id in due {
            self.end(id, Ok(()));
        }
    }

    pub(super) fn fail_all(&mut self, trouble: &Trouble) {
        let open: Vec<_> = self.open.keys().copied().collect();
        for id in open {
            self.end(id, Err(trouble.cause()));
        }
    }
}

fn calls(id: QueryId, steps: Vec<Inspect>) -> Vec<Call> {
    let calls = steps.into_iter().map(|step| Call::Inspect(id, step));
    calls.collect()
}

impl Inspection {
    /// When it is answered with what is known then.
    fn ends(&self) -> Option<Moment> {
        match self {
            Self::Status(reporting) => reporting.ends(),
            _ => None,
        }
    }

    fn found(self) -> Found {
        match self {
            Self::Status(reporting) => Found::Status(reporting.status()),
            Self::List { found, .. } => Found::List(found.into_iter().collect()),
            Self::Overview(gathering) => Found::Overview(gathering.overview()),
            Self::Diagnose(diagnosis) => Found::Diagnose(diagnosis.findings()),
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
    let (cursor, keys) = read_page(&value?)?;
    let owners = keys.into_iter().filter(|(_, part)| *part == Part::Owner);
    found.extend(
        owners
            .map(|(key, _)| key)
            .filter(|key| pattern.matches(key)),
    );
    Some(cursor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::fence::FencingToken;

    #[test]
    fn what_a_holder_tells_ends_no_question_that_has_no_answer_yet() {
        let mut inspections = Inspections::new(Layout::Shared);
        let now = Moment::from_nanos(1);
        for id in [1, 2] {
            inspections.begin(now, QueryId(id), Query::Status(LockKey::of("k")));
        }
        let token = Token::parse(&"7".repeat(32)).expect("a token");
        let name = format!("{token} 1@host");
        let holder = [
            Value::Int(0),
            Value::Array(Vec::new()),
            Value::BulkString(name.into_bytes()),
            Value::Int(900),
        ];
        let step = Inspect::Status(LockKey::of("k"));
        let reply = Ok(Reply::Raw(Value::Array(holder.into())));
        assert!(!inspections.replied(now, QueryId(1), step, reply).is_empty());
        inspections.told(token, 9, Duration::ZERO, 0);
        let answer = inspections.next_answer();
        let Some(Outcome::Answered {
            id: QueryId(1),
            result: Ok(Found::Status(status)),
        }) = answer
        else {
            panic!("no status: {answer:?}");
        };
        assert_eq!(status.holders[0].fencing_token, Some(FencingToken::new(9)));
        assert!(
            inspections.next_answer().is_none(),
            "nobody has answered it"
        );
    }
}

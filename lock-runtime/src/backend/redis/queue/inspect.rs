//! Inspections: who holds a lock, which locks there are, and taking one away.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, SystemTime};

use redis::Value;

use super::diagnosis::Diagnosis;
use super::gathering::{Gathering, Part, lease, read_page};
use super::next::Next;
use crate::backend::Outcome;
use crate::backend::name;
use crate::backend::redis::protocol::call::Call;
use crate::backend::redis::protocol::inspection::Inspect;
use crate::backend::redis::protocol::kind;
use crate::backend::redis::protocol::names::Layout;
use crate::backend::redis::protocol::reply::{Reply, Trouble, number, text};
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::vocabulary::error::Cause;
use crate::vocabulary::fence::FencingToken;
use crate::vocabulary::health::Health;
use crate::vocabulary::holder::{Status, Waiter};
use crate::vocabulary::key::LockKey;
use crate::vocabulary::query::{Found, Pattern, Query, QueryId};

/// How long holders have to report about their locks. A stopped holder does not; of it
/// only the entry on the server is known.
const PATIENCE: Duration = Duration::from_millis(300);

/// The queries that are not answered yet, and the answers to the others.
#[derive(Debug)]
pub(super) struct Inspections {
    layout: Layout,
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
                let status = Status::free(key.clone());
                let inspection = Inspection::Status { status, ends: None };
                (inspection, vec![Inspect::Status(key)])
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
            (Inspection::Status { status, ends, .. }, Inspect::Status(_)) => {
                *ends = Some(now.after(PATIENCE));
                read_status(value, status).map(|tokens| {
                    if tokens.is_empty() {
                        Next::Answer
                    } else {
                        Next::Calls(vec![Inspect::Holders(tokens)])
                    }
                })
            }
            (Inspection::Status { .. }, _) => return Vec::new(),
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
            // One that has no answer yet has no holders either.
            if let Inspection::Status {
                status,
                ends: Some(_),
                ..
            } = inspection
            {
                for holder in &mut status.holders {
                    if Token::parse(&holder.id) == Some(token) {
                        // They are out of the line that the server keeps.
                        status.waiters += followers;
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

fn calls(id: QueryId, steps: Vec<Inspect>) -> Vec<Call> {
    let calls = steps.into_iter().map(|step| Call::Inspect(id, step));
    calls.collect()
}

impl Inspection {
    fn found(self) -> Found {
        match self {
            Self::Status { status, .. } => Found::Status(status),
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

/// The tokens of the holders that can report more.
fn read_status(value: Option<Value>, status: &mut Status) -> Option<Vec<Token>> {
    let Some(Value::Array(items)) = value else {
        return None;
    };
    let [waiters, Value::Array(line), holders @ ..] = &*items else {
        return None;
    };
    status.waiters = usize::try_from(number(waiters)?).ok()?;
    status.line = line
        .chunks_exact(3)
        .map(read_waiter)
        .collect::<Option<_>>()?;
    let mut tokens = Vec::new();
    for pair in holders.chunks_exact(2) {
        let holder = name::holder(&text(&pair[0])?, lease(&pair[1])?);
        if !holder.resting && holder.process.is_some() {
            tokens.extend(Token::parse(&holder.id));
        }
        status.holders.push(holder);
    }
    Some(tokens)
}

fn read_waiter(facts: &[Value]) -> Option<Waiter> {
    let [kind, name, waited] = facts else {
        return None;
    };
    let who = name::holder(&text(name)?, None);
    let waited = Duration::from_micros(number(waited)?);
    Some(Waiter::new(who, kind::parse(&text(kind)?)?, Some(waited)))
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

    #[test]
    fn what_a_holder_tells_ends_no_question_that_has_no_answer_yet() {
        let mut inspections = Inspections::new(Layout::Shared);
        let now = Moment::from_nanos(1);
        for id in [1, 2] {
            inspections.begin(now, QueryId(id), Query::Status(LockKey::from("k")));
        }
        let token = Token::parse(&"7".repeat(32)).expect("a token");
        let name = format!("{token} 1@host");
        let holder = [
            Value::Int(0),
            Value::Array(Vec::new()),
            Value::BulkString(name.into_bytes()),
            Value::Int(900),
        ];
        let step = Inspect::Status(LockKey::from("k"));
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
        assert_eq!(status.holders[0].fence, Some(FencingToken::new(9)));
        assert!(
            inspections.next_answer().is_none(),
            "nobody has answered it"
        );
    }
}

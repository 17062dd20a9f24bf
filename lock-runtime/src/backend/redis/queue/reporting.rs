//! Who holds a lock and who waits for it: what the server knows, and what the holders report.

use std::time::{Duration, SystemTime};

use redis::Value;

use super::gathering::lease;
use super::next::Next;
use crate::backend::name;
use crate::backend::redis::protocol::inspection::Inspect;
use crate::backend::redis::protocol::kind;
use crate::backend::redis::protocol::reply::{number, text};
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::fence::FencingToken;
use crate::types::holder::{Status, Waiter};
use crate::types::key::LockKey;

/// How long holders have to report about their locks. A stopped holder does not; of it
/// only the entry on the server is known.
const PATIENCE: Duration = Duration::from_millis(300);

/// The status of a lock that is not complete yet.
#[derive(Debug)]
pub(super) struct Reporting {
    status: Status,
    /// When its answer is due, once the holders were asked.
    ends: Option<Moment>,
}

impl Reporting {
    pub(super) fn new(key: LockKey) -> Self {
        let status = Status::free(key);
        Self { status, ends: None }
    }

    /// When it is complete even if some have not reported.
    pub(super) fn ends(&self) -> Option<Moment> {
        self.ends
    }

    pub(super) fn status(self) -> Status {
        self.status
    }

    /// Takes in what the server knows.
    pub(super) fn read(&mut self, now: Moment, value: Option<Value>) -> Option<Next> {
        self.ends = Some(now.after(PATIENCE));
        let tokens = read(value, &mut self.status)?;
        Some(if tokens.is_empty() {
            Next::Answer
        } else {
            Next::Calls(vec![Inspect::Holders(tokens)])
        })
    }

    /// Takes in what a holder says of its lock, and how many follow it in its chain;
    /// whether all have reported now.
    pub(super) fn told(
        &mut self,
        token: Token,
        fence: u64,
        since: Option<SystemTime>,
        followers: usize,
    ) -> bool {
        // One that has no answer yet has no holders either.
        if self.ends.is_none() {
            return false;
        }
        let status = &mut self.status;
        for holder in &mut status.holders {
            if Token::parse(&holder.id) == Some(token) {
                // They are out of the line that the server keeps.
                status.waiting += followers;
                holder.since = since;
                holder.fencing_token = Some(FencingToken::new(fence));
            }
        }
        let mut holders = status.holders.iter();
        holders.all(|it| it.resting || it.fencing_token.is_some())
    }
}

/// The tokens of the holders that can report more.
fn read(value: Option<Value>, status: &mut Status) -> Option<Vec<Token>> {
    let Some(Value::Array(items)) = value else {
        return None;
    };
    let [waiting, Value::Array(waiters), holders @ ..] = &*items else {
        return None;
    };
    status.waiting = usize::try_from(number(waiting)?).ok()?;
    status.waiters = waiters
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

//! Gathers what the locks depend on, one fact after the other, so that the server is
//! measured idle.

use std::time::{Duration, SystemTime};

use redis::{FromRedisValue as _, Value};

use super::scan::read_page;
use super::{Server, mismatch};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::redis::findings::{Facts, Lasting, findings};
use crate::backend::redis::protocol::inspection::{Fact, Inspect};
use crate::backend::redis::protocol::names::Layout;
use crate::backend::redis::protocol::reply::text;
use crate::types::error::Cause;
use crate::types::finding::Finding;

const SCRIPT_LOAD: &[&str] = &["SCRIPT", "LOAD", "return 1"];
const CLIENT_ID: &[&str] = &["CLIENT", "ID"];
/// The number of no client.
const CLIENT_KILL: &[&str] = &["CLIENT", "KILL", "ID", "9223372036854775807"];

/// The questions in their order; the clock follows.
const FACTS: [Fact; 10] = [
    Fact::Info,
    Fact::Config("appendfsync"),
    Fact::Config("no-appendfsync-on-rewrite"),
    Fact::Config("save"),
    Fact::Config("stop-writes-on-bgsave-error"),
    Fact::Config("min-replicas-*"),
    Fact::Rights,
    Fact::Useful(SCRIPT_LOAD),
    Fact::Useful(CLIENT_ID),
    Fact::Useful(CLIENT_KILL),
];

/// How often the clock is asked, to measure the way.
const PROBES: usize = 10;

/// How many pages of keys are read, of 500 keys of the database each.
const MOST_PAGES: usize = 200;

impl<C: Copy> Server<C> {
    pub(in crate::backend::redis) async fn diagnose(self) -> Result<Vec<Finding>, Cause> {
        let mut facts = Facts {
            declared: self.layout == Layout::Declared,
            ..Facts::default()
        };
        for fact in FACTS.into_iter().chain([Fact::Clock; PROBES]) {
            let asked = self.clock.now();
            let answer = answered(self.ask(Inspect::Fact(fact)).await)?;
            let took = self.clock.now().since(asked);
            match answer {
                Ok(value) => facts.note(fact, value, took),
                Err(why) => facts.refused(fact, why.cause().to_string()),
            }
        }
        facts.lasting = self.lasting().await?;
        Ok(findings(&facts))
    }

    /// Looks for keys under the prefix that never expire. A user without the right to look gets no
    /// answer; listing locks fails then too, and says why.
    async fn lasting(&self) -> Result<Lasting, Cause> {
        let (mut found, mut cursor) = (Lasting::default(), 0);
        for _ in 0..MOST_PAGES {
            let Ok(page) = answered(self.ask(Inspect::Keys { cursor }).await)? else {
                return Ok(found);
            };
            let (next, names) = read_page(&page).ok_or_else(mismatch)?;
            let names = names.iter().filter_map(text).filter(|it| should_expire(it));
            let keys: Vec<Box<str>> = names.map(Into::into).collect();
            let ask_left = |key: Box<str>| (key.clone(), self.ask(Inspect::Left(key)));
            let asked: Vec<_> = keys.into_iter().map(ask_left).collect();
            for (key, left) in asked {
                if let Ok(Value::Int(-1)) = answered(left.await)? {
                    found.count += 1;
                    found.first.get_or_insert(key);
                }
            }
            cursor = next;
            if cursor == 0 {
                found.is_complete = true;
                break;
            }
        }
        Ok(found)
    }
}

/// The server's answer, which may be a refusal. Fails without an answer.
fn answered(answer: Result<Value, Trouble>) -> Result<Result<Value, Trouble>, Cause> {
    match answer {
        Err(Trouble::Unknown(cause)) => Err(cause),
        answer => Ok(answer),
    }
}

impl Facts {
    fn note(&mut self, fact: Fact, value: Value, took: Duration) {
        match fact {
            Fact::Info => {
                let text = String::from_redis_value(value).unwrap_or_default();
                let lines = text.lines().filter_map(|line| line.split_once(':'));
                let pairs = lines.map(|(name, value)| (name.to_owned(), value.to_owned()));
                self.values.extend(pairs);
            }
            Fact::Config(_) => {
                let pairs = Vec::<(String, String)>::from_redis_value(value);
                self.values.extend(pairs.unwrap_or_default());
            }
            Fact::Clock => {
                self.round_trips.push(took);
                if let Ok((seconds, micros)) = <(u64, u64)>::from_redis_value(value) {
                    let micros = Duration::from_micros(micros);
                    let theirs = Duration::from_secs(seconds).saturating_add(micros);
                    let ours = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                    let ours = ours.unwrap_or_default().saturating_sub(took / 2);
                    self.clocks.push((took, theirs, ours));
                }
            }
            Fact::Rights => {
                let refused = Vec::<(String, String)>::from_redis_value(value);
                self.refused.extend(refused.unwrap_or_default());
            }
            Fact::Useful(_) => {}
        }
    }

    /// Notes what the server said instead of an answer.
    fn refused(&mut self, fact: Fact, said: String) {
        match fact {
            Fact::Info => self.no_info = Some(said),
            Fact::Config(_) => self.no_config = Some(said),
            Fact::Useful(words) => self.useless.push((words[0], words[1], said)),
            Fact::Rights | Fact::Clock => self.refused.push(("EVALSHA".to_owned(), said)),
        }
    }
}

/// The owner of a lock is looked at with its lock, and counters stay.
fn should_expire(key: &str) -> bool {
    let is_counter = [":fence", ":run"].iter().any(|it| key.ends_with(it));
    let is_owner = key.contains(":{") && key.ends_with('}');
    !is_counter && !is_owner
}

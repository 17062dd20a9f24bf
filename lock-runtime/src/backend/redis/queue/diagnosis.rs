//! Gathers what the locks depend on, one fact after the other, so that the server is
//! measured idle.

use std::time::{Duration, SystemTime};

use redis::{FromRedisValue as _, Value};

use super::lasting::Search;
use super::next::Next;
use crate::backend::redis::findings::{Facts, findings};
use crate::backend::redis::protocol::inspection::{Fact, Inspect};
use crate::backend::redis::protocol::names::Layout;
use crate::backend::redis::protocol::reply::Trouble;
use crate::base::clock::Moment;
use crate::types::finding::Finding;

const SCRIPT_LOAD: &[&str] = &["SCRIPT", "LOAD", "return 1"];
const CLIENT_ID: &[&str] = &["CLIENT", "ID"];
/// The number of no client.
const CLIENT_KILL: &[&str] = &["CLIENT", "KILL", "ID", "9223372036854775807"];

/// What is asked, in this order. The clock is asked several times, to measure the way.
const STEPS: &[Fact] = &[
    Fact::Info,
    Fact::Config("appendfsync"),
    Fact::Config("save"),
    Fact::Config("min-replicas-*"),
    Fact::Rights,
    Fact::Useful(SCRIPT_LOAD),
    Fact::Useful(CLIENT_ID),
    Fact::Useful(CLIENT_KILL),
    Fact::Clock,
    Fact::Clock,
    Fact::Clock,
    Fact::Clock,
    Fact::Clock,
    Fact::Clock,
    Fact::Clock,
    Fact::Clock,
    Fact::Clock,
    Fact::Clock,
];

/// Some facts, while others are asked for.
#[derive(Debug)]
pub(super) struct Diagnosis {
    facts: Facts,
    step: usize,
    asked: Moment,
    search: Search,
}

impl Diagnosis {
    /// A diagnosis that knows nothing yet, and its first question.
    pub(super) fn begin(now: Moment, layout: Layout) -> (Self, Inspect) {
        let this = Self {
            facts: Facts {
                declared: layout == Layout::Declared,
                ..Facts::default()
            },
            step: 0,
            asked: now,
            search: Search::default(),
        };
        (this, Inspect::Fact(STEPS[0]))
    }

    /// Notes what the server said instead of an answer.
    pub(super) fn refused(&mut self, step: &Inspect, trouble: &Trouble) {
        let said = trouble.cause().to_string();
        let Inspect::Fact(fact) = step else {
            // Nor can locks be listed, then, which says why.
            return;
        };
        match *fact {
            Fact::Info => self.facts.no_info = Some(said),
            Fact::Config(_) => self.facts.no_config = Some(said),
            Fact::Useful(words) => self.facts.useless.push((words[0], words[1], said)),
            Fact::Rights | Fact::Clock => self.facts.refused.push(("EVALSHA".to_owned(), said)),
        }
    }

    /// Takes in what a step has found, if it has, and goes on; `None` if it cannot be read.
    pub(super) fn learned(
        &mut self,
        now: Moment,
        step: Inspect,
        value: Option<Value>,
    ) -> Option<Next> {
        match (step, value) {
            (Inspect::Fact(fact), value) => Some(self.learned_fact(now, fact, value)),
            (Inspect::Keys { .. }, Some(value)) => self.search.page(&value),
            (Inspect::Keys { .. }, None) => Some(Next::Answer),
            (Inspect::Left(key), left) => Some(self.search.left(key, left.as_ref())),
            _ => None,
        }
    }

    /// Takes in a fact, if there is one, and asks for the next.
    fn learned_fact(&mut self, now: Moment, fact: Fact, value: Option<Value>) -> Next {
        if let Some(value) = value {
            self.note(now, fact, value);
        }
        self.step += 1;
        self.asked = now;
        match STEPS.get(self.step) {
            Some(fact) => Next::Calls(vec![Inspect::Fact(*fact)]),
            None => Next::Calls(vec![Search::first_step()]),
        }
    }

    fn note(&mut self, now: Moment, fact: Fact, value: Value) {
        match fact {
            Fact::Info => {
                let text = String::from_redis_value(value).unwrap_or_default();
                let lines = text.lines().filter_map(|line| line.split_once(':'));
                let pairs = lines.map(|(name, value)| (name.to_owned(), value.to_owned()));
                self.facts.values.extend(pairs);
            }
            Fact::Config(_) => {
                let pairs = Vec::<(String, String)>::from_redis_value(value);
                self.facts.values.extend(pairs.unwrap_or_default());
            }
            Fact::Clock => {
                let took = now.since(self.asked);
                self.facts.round_trips.push(took);
                if let Ok((seconds, micros)) = <(u64, u64)>::from_redis_value(value) {
                    let theirs = Duration::from_secs(seconds) + Duration::from_micros(micros);
                    let ours = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                    let ours = ours.unwrap_or_default().saturating_sub(took / 2);
                    self.facts.clocks.push((took, theirs, ours));
                }
            }
            Fact::Rights => {
                let refused = Vec::<(String, String)>::from_redis_value(value);
                self.facts.refused.extend(refused.unwrap_or_default());
            }
            Fact::Useful(_) => {}
        }
    }

    pub(super) fn findings(mut self) -> Vec<Finding> {
        self.facts.lasting = self.search.found();
        findings(&self.facts)
    }
}

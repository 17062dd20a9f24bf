//! The lines of a history, written and read again.

use std::{fmt, str::FromStr, time::Duration};

use super::plan::Kind;

/// Something that one operation did.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// `CLOCK_MONOTONIC`, the same in all processes.
    pub(super) at: Duration,
    /// Which process noted it.
    pub(super) process: String,
    /// The number of the operation.
    pub(super) operation: usize,
    /// What it did.
    pub(super) what: What,
}

/// What an operation did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// It asks for these keys.
    Begin(Kind, Vec<String>),
    /// It was granted these, under a fence, and at least until then.
    Granted(u64, Duration, Vec<String>),
    /// A turn of its body began when the lock was known to be its own until then; zero: it was not known any more.
    Step(Duration),
    /// The body ended by itself.
    Done,
    /// The caller learnt that the lock was lost.
    Lost,
    /// The caller learnt that the lock was not taken.
    Failed(String),
    /// The caller lost interest.
    Cancelled,
    /// It is about to be released, and the answer will be waited for.
    Release,
    /// The answer: whether it was ours until then.
    Released(bool),
    /// The process is about to be stopped.
    Stop,
    /// The process is about to be killed.
    Kill,
    /// Its connections are about to be closed.
    Cut,
    /// A lock was revoked, by force or since the server has forgotten it: not before that moment, and under no
    /// fence that is larger.
    Revoked(String, Duration, u64),
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin(kind, keys) => write!(f, "begin {kind} {}", keys.join(" ")),
            Self::Granted(fence, until, keys) => {
                write!(f, "granted {fence} {} {}", until.as_nanos(), keys.join(" "))
            }
            Self::Step(until) => write!(f, "step {}", until.as_nanos()),
            Self::Done => f.write_str("done"),
            Self::Lost => f.write_str("lost"),
            Self::Failed(error) => write!(f, "failed {error}"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Release => f.write_str("release"),
            Self::Released(ours) => write!(f, "released {ours}"),
            Self::Stop => f.write_str("stop"),
            Self::Kill => f.write_str("kill"),
            Self::Cut => f.write_str("cut"),
            Self::Revoked(key, from, fence) => {
                write!(f, "revoked {key} {} {fence}", from.as_nanos())
            }
        }
    }
}

impl FromStr for What {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(' ').collect();
        let owned = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        Ok(match words.as_slice() {
            ["begin", kind, keys @ ..] => Self::Begin(kind.parse()?, owned(keys)),
            ["granted", fence, until, keys @ ..] => {
                Self::Granted(number(fence)?, time(until)?, owned(keys))
            }
            ["step", until] => Self::Step(time(until)?),
            ["done"] => Self::Done,
            ["lost"] => Self::Lost,
            ["failed", error] => Self::Failed((*error).to_owned()),
            ["cancelled"] => Self::Cancelled,
            ["release"] => Self::Release,
            ["released", ours] => Self::Released(*ours == "true"),
            ["stop"] => Self::Stop,
            ["kill"] => Self::Kill,
            ["cut"] => Self::Cut,
            ["revoked", key, from, fence] => {
                Self::Revoked((*key).to_owned(), time(from)?, number(fence)?)
            }
            _ => return Err(format!("no such event: {text}")),
        })
    }
}

impl Event {
    /// Reads what [`What`] and the number before it were written as.
    pub(super) fn parse(process: &str, at: Duration, words: &str) -> Self {
        let (operation, what) = words.split_once(' ').expect("a number and an event");
        Self {
            at,
            process: process.to_owned(),
            operation: operation.parse().expect("a number"),
            what: what.parse().unwrap_or_else(|error| panic!("{error}")),
        }
    }
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("no number: {word}"))
}

fn time(word: &str) -> Result<Duration, String> {
    number(word).map(Duration::from_nanos)
}

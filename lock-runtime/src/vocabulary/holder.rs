//! Who holds a lock: the name that stands on the server, and what it says.

use std::fmt::{self, Write as _};
use std::time::{Duration, SystemTime};

use once_cell::sync::Lazy;

use crate::vocabulary::fence::FencingToken;
use crate::vocabulary::key::LockKey;
use crate::vocabulary::terms::Terms;

/// A holder of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The value that identifies the acquisition on the server: a token, or what
    /// a foreign client wrote.
    pub id: Box<str>,
    /// How long the holder's lease lasts without a renewal; `None` where a
    /// foreign client set no expiry.
    pub remaining: Option<Duration>,
    /// The number of its process.
    pub process: Option<u32>,
    /// The name of its machine.
    pub host: Option<Box<str>>,
    /// Module and name of the annotated function, or what
    /// [`LockRequest::function`](crate::LockRequest::function) was given.
    pub function: Option<Box<str>>,
    /// Since when it holds the lock. Only a [`Status`] tells it, and only where
    /// the holder's process answers and has not let go.
    pub since: Option<SystemTime>,
    /// Its fencing token, under the same conditions.
    pub fence: Option<FencingToken>,
    /// Whether it has let go, and the lock is closed until its `min_hold` ends.
    pub resting: bool,
}

/// What is known of a lock; see [`LockManager::status`](crate::LockManager::status).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The lock's name.
    pub key: LockKey,
    /// Who holds it: nobody, one, or those who share it; and who has let go while
    /// the lock [rests](Holder::resting).
    pub holders: Vec<Holder>,
    /// How many wait for it. On Redis a waiter whose process has been silent for
    /// three seconds is left out, if it is among the first thousand.
    pub waiters: usize,
}

impl Status {
    /// Whether somebody holds the lock, and may be at work under it.
    pub fn is_held(&self) -> bool {
        self.holders.iter().any(|holder| !holder.resting)
    }

    /// Whether nobody holds the lock, and it is closed until its `min_hold` ends.
    pub fn is_resting(&self) -> bool {
        !self.is_held() && !self.holders.is_empty()
    }
}

/// This process, as others see it.
static HERE: Lazy<String> = Lazy::new(|| {
    let host: String = host()
        .chars()
        .map(|c| if ends_a_word(c) { '-' } else { c })
        .collect();
    format!("{}@{host}", std::process::id())
});

/// Names stand on the server as words in a line.
fn ends_a_word(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

pub(crate) fn is_one_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(ends_a_word)
}

/// The name of an acquisition: who has it, after what tells it from all others.
pub(crate) fn name(id: impl fmt::Display, terms: &Terms) -> String {
    let mut name = String::with_capacity(128);
    // Writing into a text does not fail.
    let _ = write!(name, "{id} {}", *HERE);
    if let Some(function) = terms.function {
        _ = write!(name, " {function}");
    }
    name
}

impl Holder {
    /// Reads a name, or the value of a foreign client.
    pub(crate) fn parse(name: &str, remaining: Option<Duration>) -> Self {
        let (resting, name) = match name.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, name),
        };
        let mut words = name.split(' ');
        let id = words.next().unwrap_or_default();
        let place = words.next().and_then(|word| word.split_once('@'));
        let (process, host) = match place {
            Some((process, host)) => (process.parse().ok(), Some(host.into())),
            None => (None, None),
        };
        let ours = process.is_some();
        Self {
            id: if ours { id } else { name }.into(),
            remaining,
            process,
            host: host.filter(|_| ours),
            function: words.next().filter(|_| ours).map(Into::into),
            since: None,
            fence: None,
            resting: resting && ours,
        }
    }

    /// It was heard of so long ago: a rest is not renewed, and has gone on.
    pub(crate) fn heard_before(&mut self, time: Duration) {
        if self.resting {
            self.remaining = self.remaining.map(|it| it.saturating_sub(time));
        }
    }
}

/// Where the holder is, in words.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(process), Some(host)) = (self.process, &self.host) else {
            return f.write_str("somebody else");
        };
        match &self.function {
            Some(function) => write!(f, "`{function}` in process {process} on {host}"),
            None => write!(f, "process {process} on {host}"),
        }
    }
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "localhost".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::terms::LeaseId;

    #[test]
    fn a_name_says_who_where_and_what_for() {
        let terms = Terms {
            function: Some("shop::stock::buy"),
            ..Terms::of(LeaseId(1), "k", Duration::from_secs(1))
        };
        let holder = Holder::parse(&name("4f", &terms), None);
        assert_eq!((&*holder.id, holder.resting), ("4f", false));
        assert_eq!(holder.process, Some(std::process::id()));
        assert_eq!(holder.host.as_deref(), Some(host().as_str()));
        assert_eq!(holder.function.as_deref(), Some("shop::stock::buy"));

        let resting = Holder::parse(&format!("-{}", name("4f", &terms)), None);
        assert_eq!((&*resting.id, resting.resting), ("4f", true));
    }

    #[test]
    fn a_foreign_value_is_shown_whole() {
        for value in ["", "somebody", "me @ home", "-1 x", "a b@c d"] {
            let holder = Holder::parse(value, None);
            assert_eq!(&*holder.id, value.strip_prefix('-').unwrap_or(value));
            assert_eq!(holder.to_string(), "somebody else");
        }
    }
}

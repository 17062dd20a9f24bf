//! One script that ran: how it was called, and what it has written to the keys of locks.

use spec::queue::history::{Grant, Id, Outcome};

use crate::{monitor::command, protocol::token_of};

/// A line of the monitor.
#[derive(Debug)]
pub(super) struct Line {
    /// The server's clock, in microseconds.
    pub(super) at: u64,
    pub(super) by_script: bool,
    pub(super) words: Vec<String>,
}

impl Line {
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (seconds, micros) = line.strip_prefix('+')?.split_once(' ')?.0.split_once('.')?;
        let (by_script, words) = command(line)?;
        let (seconds, micros): (u64, u64) = (seconds.parse().ok()?, micros.parse().ok()?);
        Some(Self {
            at: seconds * 1_000_000 + micros,
            by_script,
            words,
        })
    }
}

/// A call of a script and its writes.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) at: u64,
    /// The digest of the script.
    pub(super) script: String,
    pub(super) keys: Vec<String>,
    pub(super) arguments: Vec<String>,
    writes: Vec<Vec<String>>,
    /// When it read or wrote last.
    ended: u64,
}

/// A grant that was published.
struct Published<'a> {
    channel: &'a str,
    owner: &'a str,
    grant: Grant,
    /// Whether somebody has received it; else the script takes the lock back at once.
    heard: bool,
}

impl Ran {
    /// `EVALSHA`, the digest, the number of keys, the keys and the arguments.
    pub(super) fn of(at: u64, words: &[String]) -> Option<Self> {
        let (script, count) = (words.get(1)?, words.get(2)?.parse().ok()?);
        let (keys, arguments) = words.get(3..)?.split_at_checked(count)?;
        Some(Self {
            at,
            script: script.clone(),
            keys: keys.to_vec(),
            arguments: arguments.to_vec(),
            writes: Vec::new(),
            ended: at,
        })
    }

    pub(super) fn write(&mut self, line: Line) {
        self.ended = line.at;
        self.writes.push(line.words);
    }

    /// How long it took, in microseconds.
    pub(super) fn duration(&self) -> u64 {
        self.ended.saturating_sub(self.at)
    }

    /// Each script reads something at least.
    pub(super) fn has_run(&self) -> bool {
        !self.writes.is_empty()
    }

    fn words(&self) -> impl Iterator<Item = (usize, Vec<&str>)> {
        let writes = self.writes.iter().enumerate();
        writes.map(|(at, it)| (at, it.iter().map(String::as_str).collect()))
    }

    fn published(&self) -> Vec<Published<'_>> {
        let messages = self.words().filter_map(|(at, words)| match words[..] {
            ["publish", channel, message] => Some((at, channel, message)),
            _ => None,
        });
        let grants = messages.filter_map(|(at, channel, message)| {
            let mut lines = message.split('\n');
            let (fence, owner, name) = (lines.next()?.parse().ok()?, lines.next()?, lines.next()?);
            let followers = lines.map(number).collect::<Option<_>>()?;
            let token = number(name)?;
            Some(Published {
                channel,
                owner,
                grant: Grant {
                    token,
                    fence,
                    followers,
                },
                heard: !self.is_taken_back(at, owner),
            })
        });
        grants.collect()
    }

    /// Whether the owner is deleted right after this write, but for the note of a grant.
    fn is_taken_back(&self, at: usize, owner: &str) -> bool {
        let mut next = self.words().skip(at + 1).map(|(_, words)| words);
        next.find(|words| !words.get(1).is_some_and(|key| key.contains(":n:")))
            .is_some_and(|words| words == ["del", owner])
    }

    /// The grants of a lock that were received.
    pub(super) fn grants(&self, owner: &str) -> Vec<Grant> {
        let published = self.published().into_iter();
        let heard = published.filter(|it| it.heard && it.owner == owner);
        heard.map(|it| it.grant).collect()
    }

    /// The channels to which grants were published, and whether anybody has received them.
    pub(super) fn channels(&self) -> Vec<(&str, bool)> {
        let published = self.published().into_iter();
        published.map(|it| (it.channel, it.heard)).collect()
    }

    /// Who has become the owner of a lock, and who has joined its queue.
    pub(super) fn outcome(&self, owner: &str) -> Outcome {
        let queue = format!("{owner}:q");
        let published = self.published();
        let deaf: Vec<Id> = published
            .iter()
            .filter(|it| !it.heard)
            .map(|it| it.grant.token)
            .collect();
        let (mut owners, mut positions) = (Vec::new(), Vec::new());
        for (_, words) in self.words() {
            match words[..] {
                ["set", key, name, ..] if key == owner => owners.extend(number(name)),
                ["zadd", key, "NX", score, member] if key == queue => {
                    let token = member.split_once('\n').and_then(|(_, name)| number(name));
                    positions.extend(token.zip(whole(score)));
                }
                _ => {}
            }
        }
        owners.retain(|it| !deaf.contains(it));
        Outcome::Writes { owners, positions }
    }

    /// Whether the script has found the lock free, and nobody waiting for it.
    pub(super) fn takes_a_free_lock(&self, owner: &str) -> bool {
        let sets = |words: &[&str]| matches!(words, ["set", key, _, "PX", _] if *key == owner);
        // What goes into a cooldown, becomes a ticket or adopts one extends the key before.
        let extends = |words: &[&str]| matches!(words, ["pexpire", key, ..] if *key == owner);
        self.words().any(|(_, words)| sets(&words))
            && !self.words().any(|(_, words)| extends(&words))
            && self.published().is_empty()
    }
}

/// A token as a number; none where the name is that of a cooldown, a ticket or a kind.
pub(super) fn number(name: &str) -> Option<Id> {
    u128::from_str_radix(token_of(name), 16).ok().map(Id)
}

/// A score without the half that marks it.
pub(super) fn whole(score: &str) -> Option<u64> {
    score.split('.').next()?.parse().ok()
}

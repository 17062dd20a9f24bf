//! What a seed decides: every operation of a run, and what befalls its process.

use std::{fmt, str::FromStr, time::Duration};

use fastrand::Rng;

use super::{HOT, KEYS, TTL};

/// In which way a lock is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Alone; a writer is the same.
    Exclusive,
    /// With other readers.
    Read,
    /// With others, so many at once.
    Permits(u32),
}

/// What befalls a process, or the first lock that it asks for, in the middle of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is killed, and another one replaces it.
    Kill,
    /// It stands still for so long.
    Stop(Duration),
    /// Its connections are closed.
    Cut,
    /// The lock is revoked.
    Force,
    /// The server forgets who has the lock.
    Forget,
}

/// Everything that is random about one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    pub(super) keys: Vec<String>,
    pub(super) ttl: Duration,
    pub(super) wait: Duration,
    pub(super) renew: bool,
    /// How long the lock is closed at least.
    pub(super) min_hold: Option<Duration>,
    /// How long the body sleeps between its steps.
    pub(super) pauses: Vec<Duration>,
    /// When the caller loses interest, wherever the operation stands then.
    pub(super) cancel: Option<Duration>,
    /// Whether the release is waited for.
    pub(super) confirmed: bool,
    /// What befalls the process, so long after the beginning.
    pub(super) fault: Option<(Duration, Fault)>,
}

impl Operation {
    /// The choices of one operation, the same whenever they are asked for.
    pub(super) fn of(seed: u64, number: usize) -> Self {
        let rng = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number as u64;
        let rng = &mut Rng::with_seed(rng);

        // The first keys are asked for more often, and one of them most.
        let most = rng.usize(KEYS / 2..=KEYS);
        let first = match rng.u8(..4) {
            0 => HOT,
            _ => rng.usize(..most),
        };
        let kind = kind(rng, first);
        let mut keys = vec![first];
        if rng.u8(..100) < 18 {
            keys.push(rng.usize(..KEYS));
            keys.extend(rng.bool().then(|| rng.usize(..KEYS)));
        }
        // Only those with the same lease are handed a lock together.
        let ttl = if rng.u8(..4) > 0 {
            TTL
        } else {
            millis(rng, 300, 500)
        };
        let wait = match rng.u8(..10) {
            0 | 1 => Duration::ZERO,
            2..8 if first == HOT => millis(rng, 20, 1000),
            2..8 => millis(rng, 20, 400),
            _ => Duration::from_secs(2),
        };
        let fault = match rng.u32(..1300) {
            0..4 => Some(Fault::Kill),
            4..10 => Some(Fault::Stop(ttl + millis(rng, 20, 200))),
            10..13 => Some(Fault::Cut),
            13..17 => Some(Fault::Force),
            17..20 => Some(Fault::Forget),
            _ => None,
        };
        let (renew, pauses) = if fault.is_some() {
            // Long enough to be struck in the middle.
            (true, vec![Duration::from_millis(2); 20])
        } else {
            body(rng, kind)
        };
        let fault = fault.map(|fault| (micros(rng, 20_000), fault));
        let min_hold = (rng.u8(..40) == 0).then(|| millis(rng, 1, 30));
        let cancel = (rng.u8(..100) < 6).then(|| micros(rng, 10_000));
        Self {
            kind,
            keys: keys.iter().map(|key| format!("model-{key}")).collect(),
            ttl,
            wait,
            renew,
            min_hold,
            pauses,
            cancel,
            confirmed: cancel.is_none() && rng.bool(),
            fault,
        }
    }
}

/// A third of the keys have permits nearly always, so that whoever comes next needs one too; another third has mostly
/// readers. Few others wait for the one that is wanted most.
fn kind(rng: &mut Rng, key: usize) -> Kind {
    let permits = Kind::Permits(2 + u32::from(rng.u8(..50) == 0));
    let [exclusive, shared_by_permits] = match key % 3 {
        _ if key == HOT => [17, 1],
        0 => [1, 18],
        1 => [5, 1],
        _ => [13, 2],
    };
    match rng.u8(..20) {
        lot if lot < exclusive => Kind::Exclusive,
        lot if lot < exclusive + shared_by_permits => permits,
        _ => Kind::Read,
    }
}

/// Whether the lease of a body is renewed, and its pauses.
fn body(rng: &mut Rng, kind: Kind) -> (bool, Vec<Duration>) {
    let beat = Duration::from_millis(10);
    match rng.u32(..1000) {
        // Surely lost, surely renewed, and probably renewed.
        0..2 => (false, vec![beat; 60]),
        2..4 => (true, vec![beat; 80]),
        4..10 => (true, vec![beat; rng.usize(5..20)]),
        _ => {
            let most = if kind == Kind::Exclusive { 4 } else { 8 };
            let pauses = (0..rng.usize(1..most)).map(|_| micros(rng, 900));
            let pauses = pauses.collect();
            (rng.u8(..10) > 0, pauses)
        }
    }
}

fn millis(rng: &mut Rng, least: u64, most: u64) -> Duration {
    Duration::from_millis(rng.u64(least..=most))
}

fn micros(rng: &mut Rng, most: u64) -> Duration {
    Duration::from_micros(rng.u64(..most))
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exclusive => f.write_str("exclusive"),
            Self::Read => f.write_str("read"),
            Self::Permits(most) => write!(f, "permits-{most}"),
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let permits = word.strip_prefix("permits-").map(str::parse);
        match (word, permits) {
            ("exclusive", _) => Ok(Self::Exclusive),
            ("read", _) => Ok(Self::Read),
            (_, Some(Ok(most))) => Ok(Self::Permits(most)),
            _ => Err(format!("no such kind: {word}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_choices_and_another_one_has_others() {
        let all = |seed| -> Vec<_> { (0..100).map(|it| Operation::of(seed, it)).collect() };
        assert_eq!(all(7), all(7));
        assert_ne!(all(7), all(8));
    }
}

//! The part of a lock that an entry takes, in stores that keep a queue of entries.

use std::fmt;

use crate::types::kind::Kind;
use crate::types::terms::Terms;

/// The kind of an acquisition, and how many permits it takes: 1 if the lock has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) kind: Kind,
    pub(crate) take: u32,
}

impl Share {
    /// That of an acquisition.
    pub(crate) fn of(terms: &Terms) -> Self {
        Self {
            kind: terms.kind,
            take: terms.take,
        }
    }

    /// Whether it may enter beside others of its kind that have taken so many permits.
    pub(crate) fn fits(self, taken: usize) -> bool {
        self.kind.admits(taken.saturating_add(self.permits() - 1))
    }

    /// How many permits it takes, at least one.
    pub(crate) fn permits(self) -> usize {
        usize::try_from(self.take.max(1)).unwrap_or(usize::MAX)
    }

    /// Reads the code of a share, as it is displayed.
    pub(crate) fn parse(code: &str) -> Option<Self> {
        Some(match code {
            "x" => Kind::Exclusive.into(),
            "r" => Kind::Read.into(),
            _ => {
                let permits = code.strip_prefix('p')?;
                let (most, take) = permits.split_once('x').unwrap_or((permits, "1"));
                Self {
                    kind: Kind::Permits(most.parse().ok()?),
                    take: take.parse().ok()?,
                }
            }
        })
    }
}

/// One permit, or none.
impl From<Kind> for Share {
    fn from(kind: Kind) -> Self {
        Self { kind, take: 1 }
    }
}

/// `x`, `r`, `p4`, or `p4x3` for three of four permits: without characters that mean something in the names of entries.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Exclusive => f.write_str("x"),
            Kind::Read => f.write_str("r"),
            Kind::Permits(most) if self.take == 1 => write!(f, "p{most}"),
            Kind::Permits(most) => write!(f, "p{most}x{}", self.take),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_read_as_it_was_written() {
        let take = |take| Share {
            kind: Kind::Permits(12),
            take,
        };
        for (share, code) in [
            (Kind::Exclusive.into(), "x"),
            (Kind::Read.into(), "r"),
            (take(1), "p12"),
            (take(3), "p12x3"),
        ] {
            assert_eq!(share.to_string(), code);
            assert_eq!(Share::parse(code), Some(share));
        }
        for foreign in ["", "p", "px3", "p12x", "p12x3x", "q"] {
            assert_eq!(Share::parse(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_share_fits_beside_others_as_far_as_there_are_permits() {
        let three = Share {
            kind: Kind::Permits(4),
            take: 3,
        };
        for (share, taken, fits) in [
            (three, 0, true),
            (three, 1, true),
            (three, 2, false),
            (Kind::Permits(4).into(), 3, true),
            (Kind::Permits(4).into(), 4, false),
            (Kind::Read.into(), 7, true),
            (Kind::Exclusive.into(), 0, true),
            (Kind::Exclusive.into(), 1, false),
        ] {
            assert_eq!(share.fits(taken), fits, "{share} beside {taken}");
        }
    }
}

//! The code of a kind of lock, as servers keep it.

use std::fmt;

use crate::types::kind::Kind;
use crate::types::terms::Terms;

/// `x`, `r`, or `p` and the number of permits; behind that a `/` and how many of them the acquisition takes, if it
/// takes several.
pub(crate) struct KindCode {
    kind: Kind,
    take: u32,
}

impl KindCode {
    /// That of an acquisition.
    pub(crate) fn of(terms: &Terms) -> Self {
        let Terms { kind, take, .. } = *terms;
        Self { kind, take }
    }
}

/// Reads the code of a kind.
pub(crate) fn parse(code: &str) -> Option<Kind> {
    match code {
        "x" => Some(Kind::Exclusive),
        "r" => Some(Kind::Read),
        // Another client may count further.
        _ => {
            let digits = code.strip_prefix('p')?;
            let digits = digits.split('/').next()?;
            Some(Kind::Permits(digits.parse().unwrap_or(u32::MAX)))
        }
    }
}

/// How many permits the code of a kind takes.
pub(crate) fn permits(code: &str) -> u32 {
    let take = code.split('/').nth(1);
    take.and_then(|it| it.parse().ok()).unwrap_or(1)
}

impl fmt::Display for KindCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Exclusive => f.write_str("x"),
            Kind::Read => f.write_str("r"),
            Kind::Permits(most) if self.take == 1 => write!(f, "p{most}"),
            Kind::Permits(most) => write!(f, "p{most}/{}", self.take),
        }
    }
}

//! The code of a kind of lock, as servers keep it.

use std::fmt;

use crate::types::kind::Kind;

/// `x`, `r`, or `p` and the number of permits.
pub(crate) struct KindCode(pub(crate) Kind);

/// Reads the code of a kind.
pub(crate) fn parse(code: &str) -> Option<Kind> {
    match code {
        "x" => Some(Kind::Exclusive),
        "r" => Some(Kind::Read),
        // Another client may count further.
        _ => {
            let digits = code.strip_prefix('p')?;
            Some(Kind::Permits(digits.parse().unwrap_or(u32::MAX)))
        }
    }
}

impl fmt::Display for KindCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Exclusive => f.write_str("x"),
            Kind::Read => f.write_str("r"),
            Kind::Permits(most) => write!(f, "p{most}"),
        }
    }
}

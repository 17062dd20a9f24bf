//! The code of a kind of lock, in calls and in the queue.

use std::fmt;

use crate::vocabulary::kind::Kind;

/// `x`, `r`, or `p` and the number of permits.
pub(crate) struct KindCode(pub(super) Kind);

impl fmt::Display for KindCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Exclusive => f.write_str("x"),
            Kind::Read => f.write_str("r"),
            Kind::Permits(most) => write!(f, "p{most}"),
        }
    }
}

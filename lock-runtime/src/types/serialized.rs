//! Names and words of answers, serialised as `Display` writes them.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::types::finding::Severity;
use crate::types::history::GrantEnd;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::overview::ChangeKind;
use crate::types::ticket::Ticket;

macro_rules! as_displayed {
    ($($type:ty),*) => {$(
        /// Serialised as the text that `Display` writes.
        #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}

as_displayed!(ChangeKind, GrantEnd, Kind, LockKey, Severity, Ticket);

/// Read from the text that `Display` writes.
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
impl<'de> Deserialize<'de> for Ticket {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

//! Redirections of a node of a cluster for calls that it has not carried out.

use std::fmt;

/// The answer `MOVED` or `ASK`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) slot: u16,
    /// Empty: that of the node which says so.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Only for this call, and behind `ASKING`: the slot is on its way there.
    pub(crate) asking: bool,
}

impl Redirect {
    /// Reads `SLOT HOST:PORT`, where the host may be an IPv6 address without brackets.
    pub(super) fn parse(code: &str, details: &str) -> Option<Self> {
        let asking = match code {
            "MOVED" => false,
            "ASK" => true,
            _ => return None,
        };
        let (slot, address) = details.split_once(' ')?;
        let (host, port) = address.rsplit_once(':')?;
        Some(Self {
            slot: slot.parse().ok()?,
            host: if host == "?" { "" } else { host }.to_owned(),
            port: port.parse().ok()?,
            asking,
        })
    }
}

impl fmt::Display for Redirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = if self.asking { "ASK" } else { "MOVED" };
        let Self {
            slot, host, port, ..
        } = self;
        write!(f, "{code} {slot} {host}:{port}")
    }
}

impl std::error::Error for Redirect {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirection_names_slot_and_node() {
        for (code, details, host, port) in [
            ("MOVED", "3999 10.0.0.1:6381", "10.0.0.1", 6381),
            ("ASK", "3999 ::1:7000", "::1", 7000),
            ("MOVED", "3999 redis-1.shop:6379", "redis-1.shop", 6379),
            ("MOVED", "3999 :6381", "", 6381),
            ("MOVED", "3999 ?:6381", "", 6381),
        ] {
            let redirect = Redirect::parse(code, details).expect(details);
            assert_eq!((&*redirect.host, redirect.port), (host, port));
            assert_eq!((redirect.slot, redirect.asking), (3999, code == "ASK"));
        }
        for (code, details) in [("ERR", "3999 h:1"), ("MOVED", "3999"), ("MOVED", "x h:1")] {
            assert_eq!(Redirect::parse(code, details), None);
        }
    }
}

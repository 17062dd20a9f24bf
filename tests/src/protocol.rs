//! How keys, members of queues and values are written: what `docs/protocol.md` says of names, in one place.

use crate::RedisServer;

/// The length of a token, in hexadecimal digits.
const TOKEN: usize = 32;

impl RedisServer {
    /// The counter of all acquisitions, under the default prefix.
    pub const FENCE_KEY: &str = "lock:fence";

    /// The key of the owner of lock `name`, under the default prefix.
    pub fn owner_key(name: &str) -> String {
        format!("lock:{{{name}}}")
    }

    /// The key of the queue of lock `name`.
    pub fn queue_key(name: &str) -> String {
        format!("{}:q", Self::owner_key(name))
    }

    /// The key of the connections that were seen to wait for lock `name`.
    pub fn seen_key(name: &str) -> String {
        format!("{}:s", Self::owner_key(name))
    }

    /// The key of those who share lock `name`.
    pub fn holders_key(name: &str) -> String {
        format!("{}:h", Self::owner_key(name))
    }

    /// The key under which a renewal notes the grant to a token.
    pub fn note_key(name: &str, token: &str) -> String {
        format!("{}:n:{token}", Self::owner_key(name))
    }
}

/// A token that says whose it is.
pub fn token(number: u32) -> String {
    format!("{number:0TOKEN$x}")
}

/// The token in the value of an owner; of a foreign client's, all of it.
pub fn token_of(owner: &str) -> &str {
    match owner.get(..TOKEN) {
        Some(token) if token.bytes().all(|it| it.is_ascii_hexdigit()) => token,
        _ => owner,
    }
}

/// A member of a queue; the kind is `x`, `r`, or `p` and a number.
pub fn member(name: &str, kind: &str, ttl: u32, channel: &str) -> String {
    format!("{kind}:{ttl}:{channel}\n{name}")
}

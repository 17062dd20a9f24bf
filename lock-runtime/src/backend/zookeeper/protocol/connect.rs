//! The packets by which a connection begins.

use std::time::Duration;

use super::jute::{Malformed, Reader, Writer};

/// Identifies a session to the servers.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) id: i64,
    password: Vec<u8>,
}

/// The server's answer about the session.
pub(crate) struct Welcome {
    /// `None` if the session that was asked for has ended.
    pub(crate) identity: Option<Identity>,
    pub(crate) timeout: Duration,
}

/// The number of the packet that logs in, and of its answer.
const AUTH: i32 = -4;
const AUTH_TYPE: i32 = 100;

/// Asks for a session that goes on, or for a new one; `seen` is the last change that is
/// known, since a server that is behind must not answer.
pub(crate) fn hello(session: Option<&Identity>, timeout: Duration, seen: i64) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.int(0);
    writer.long(seen);
    writer.int(i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX));
    writer.long(session.map_or(0, |it| it.id));
    writer.bytes(session.map_or(&[0; 16], |it| &it.password));
    // A server without a leader is of no use.
    writer.bool(false);
    writer.finish()
}

pub(crate) fn welcome(packet: &[u8]) -> Result<Welcome, Malformed> {
    let mut reader = Reader::new(packet);
    let _version = reader.int()?;
    let timeout = u64::try_from(reader.int()?).unwrap_or(0);
    let id = reader.long()?;
    let password = reader.bytes()?.to_vec();
    Ok(Welcome {
        identity: (timeout > 0 && id != 0).then_some(Identity { id, password }),
        timeout: Duration::from_millis(timeout),
    })
}

/// Logs in as a user with a password.
pub(crate) fn login(user: &str, password: &str) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.int(AUTH);
    writer.int(AUTH_TYPE);
    writer.int(0);
    writer.bytes(b"digest");
    writer.bytes(format!("{user}:{password}").as_bytes());
    writer.finish()
}

/// The error of a login, zero for none.
pub(crate) fn logged_in(packet: &[u8]) -> Result<i32, Malformed> {
    let mut reader = Reader::new(packet);
    let (number, _zxid) = (reader.int()?, reader.long()?);
    if number != AUTH {
        return Err(Malformed);
    }
    reader.int()
}

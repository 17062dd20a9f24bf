//! The first packets of a connection: what the server offers, and what the client makes of it.

use std::io;

use bytes::{BufMut as _, BytesMut};

use super::bytes::Rest;
use super::error::ServerError;
use super::packet::strange;

const CONNECT_WITH_DB: u32 = 1 << 3;
const PROTOCOL_41: u32 = 1 << 9;
const SSL: u32 = 1 << 11;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
const MULTI_STATEMENTS: u32 = 1 << 16;
const MULTI_RESULTS: u32 = 1 << 17;
const PLUGIN_AUTH: u32 = 1 << 19;

/// What every server has that this client talks to.
const NEEDED: u32 =
    PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION | MULTI_STATEMENTS | MULTI_RESULTS | PLUGIN_AUTH;

/// The character set `utf8mb4`.
const UTF8: u8 = 45;
const LONGEST_PACKET: u32 = 64 << 20;

/// What a server says first.
#[derive(Debug)]
pub(crate) struct Greeting {
    offers: u32,
    /// What proofs of a password depend on.
    pub(crate) salt: Vec<u8>,
    /// The proof that it asks for, unless the user has another one.
    pub(crate) plugin: String,
}

impl Greeting {
    pub(crate) fn read(payload: &[u8]) -> io::Result<Result<Self, ServerError>> {
        let mut rest = Rest(payload);
        match rest.byte()? {
            10 => {}
            0xff => return Ok(Err(ServerError::read(rest)?)),
            _ => return Err(strange()),
        }
        rest.until_nul();
        rest.take(4)?;
        let mut salt = rest.take(8)?.to_vec();
        rest.byte()?;
        let low = rest.number(2)?;
        rest.take(3)?;
        let offers = u32::try_from(low | rest.number(2)? << 16).map_err(|_| strange())?;
        let length = usize::from(rest.byte()?);
        rest.take(10)?;
        let more = rest.take(length.saturating_sub(8).max(13))?;
        salt.extend(more.strip_suffix(&[0]).unwrap_or(more));
        let plugin = String::from_utf8_lossy(rest.until_nul()).into_owned();
        Ok(Ok(Self {
            offers,
            salt,
            plugin,
        }))
    }

    /// Whether the server speaks the protocol as it is needed.
    pub(crate) fn is_usable(&self) -> bool {
        self.offers & NEEDED == NEEDED
    }

    pub(crate) fn encrypts(&self) -> bool {
        self.offers & SSL != 0
    }
}

/// Asks for encryption.
pub(crate) fn ssl_request(out: &mut BytesMut) {
    begin(NEEDED | CONNECT_WITH_DB | SSL, out);
}

/// Names the user and the database, with the proof of a password.
pub(crate) fn login(
    user: &str,
    database: &str,
    plugin: &str,
    proof: &[u8],
    is_private: bool,
    out: &mut BytesMut,
) {
    let encrypted = if is_private { SSL } else { 0 };
    begin(NEEDED | CONNECT_WITH_DB | encrypted, out);
    out.put_slice(user.as_bytes());
    out.put_u8(0);
    out.put_u8(u8::try_from(proof.len()).unwrap_or(0));
    out.put_slice(proof);
    for text in [database, plugin] {
        out.put_slice(text.as_bytes());
        out.put_u8(0);
    }
}

fn begin(flags: u32, out: &mut BytesMut) {
    out.put_u32_le(flags);
    out.put_u32_le(LONGEST_PACKET);
    out.put_u8(UTF8);
    out.put_slice(&[0; 23]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What MariaDB 10.11 sends.
    fn greeting() -> Vec<u8> {
        let mut bytes = b"\x0a5.5.5-10.11.19-MariaDB\0\x2a\0\0\0saltsalt\0".to_vec();
        bytes.extend(b"\xfe\xf7\x2d\x02\0\xff\x81\x15\0\0\0\0\0\0\x1d\0\0\0twelve bytes\0");
        bytes.extend(b"mysql_native_password\0");
        bytes
    }

    #[test]
    fn a_greeting_says_who_serves_and_how_to_log_in() {
        let greeting = Greeting::read(&greeting())
            .expect("bytes")
            .expect("welcome");
        assert!(greeting.is_usable() && !greeting.encrypts());
        assert_eq!(greeting.salt, b"saltsalttwelve bytes");
        assert_eq!(greeting.plugin, "mysql_native_password");
    }

    #[test]
    fn a_greeting_that_is_cut_off_is_none() {
        let whole = greeting();
        for end in 0..whole.len() - "mysql_native_password\0".len() {
            assert!(Greeting::read(&whole[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn a_server_may_refuse_with_its_greeting() {
        let refused = Greeting::read(b"\xff\x10\x04Too many connections").expect("bytes");
        assert_eq!(refused.expect_err("refused").code, 1040);
    }
}

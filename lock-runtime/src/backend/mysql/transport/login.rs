//! The beginning of a connection: who asks, and the proof of it.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::net::TcpStream;

use super::wire::{self, Wire};
use crate::backend::mysql::protocol::bytes::Rest;
use crate::backend::mysql::protocol::error::ServerError;
use crate::backend::mysql::protocol::greeting::{self, Greeting};
use crate::backend::mysql::protocol::packet::strange;
use crate::backend::mysql::protocol::proof::{CACHING, CLEAR, proof};
use crate::backend::sql::trouble::Trouble;
use crate::backend::transport::endpoint::Route;

/// User, database and password of a connection.
pub(super) struct Login<'a> {
    pub(super) user: &'a str,
    /// Empty if there is none.
    pub(super) password: &'a str,
    pub(super) database: &'a str,
    /// Whether the connection is safe from eavesdroppers.
    pub(super) is_private: bool,
}

/// The first packet of a server. Nothing is sent before it, and whether to encrypt is decided after it.
pub(super) async fn greeted(socket: &mut TcpStream) -> Result<Greeting, Trouble> {
    let greeting = Greeting::read(&wire::first(socket).await?)??;
    if !greeting.is_usable() {
        let why = "the server is too old: it must be MySQL 8.0 or MariaDB 10.6, or newer";
        return Err(Trouble::invalid("url", why));
    }
    Ok(greeting)
}

/// The connection from now on, and the number of the next packet.
pub(super) async fn wire(
    route: &Route,
    socket: TcpStream,
    greeting: &Greeting,
) -> Result<(Wire, u8), Trouble> {
    #[cfg(feature = "tls")]
    if route.is_encrypted() {
        return encrypted(route, socket, greeting).await;
    }
    let _ = (route, greeting);
    Ok((Wire::new(Box::new(socket)), 1))
}

#[cfg(feature = "tls")]
async fn encrypted(
    route: &Route,
    socket: TcpStream,
    greeting: &Greeting,
) -> Result<(Wire, u8), Trouble> {
    use crate::backend::mysql::protocol::packet;
    use crate::backend::transport::distrust::Distrust;

    if !greeting.encrypts() {
        let why = "the server does not encrypt connections: give it a certificate, or write `sslmode=disable`";
        return Err(io::Error::other(Distrust::because(why)).into());
    }
    let (mut payload, mut request) = (BytesMut::new(), BytesMut::new());
    greeting::ssl_request(&mut payload);
    packet::write(&payload, 1, &mut request);
    let mut unwritten = &request[..];
    while !unwritten.is_empty() {
        socket.writable().await?;
        match socket.try_write(unwritten) {
            Ok(count) => unwritten = &unwritten[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok((Wire::new(route.encrypt(socket, None).await?), 2))
}

impl Login<'_> {
    /// Logs in over a connection whose next packet has this number.
    pub(super) async fn run(
        &self,
        wire: &mut Wire,
        number: u8,
        greeting: &Greeting,
    ) -> Result<(), Trouble> {
        if self.user.contains('\0') || self.database.contains('\0') {
            let why = "a user's or a database's name has a NUL character in it";
            return Err(Trouble::invalid("url", why));
        }
        // The server asks again if the user has another way to log in.
        let first = proof(&greeting.plugin, self.password, &greeting.salt);
        let (plugin, first) = match first {
            Some(first) => (&*greeting.plugin, first),
            None => (CACHING, Vec::new()),
        };
        let mut payload = BytesMut::new();
        let Self { user, database, .. } = self;
        greeting::login(
            user,
            database,
            plugin,
            &first,
            self.is_private,
            &mut payload,
        );
        wire.send(number, &payload);
        loop {
            let (number, said) = wire.next().await?;
            match said.first() {
                Some(0) => return Ok(()),
                Some(0xff) => return Err(refusal(&said)?.into()),
                Some(1) => self.go_on(wire, number, &said)?,
                Some(0xfe) => self.switch(wire, number, &said)?,
                _ => return Err(strange().into()),
            }
        }
    }

    /// The server asks for another proof.
    fn switch(&self, wire: &mut Wire, number: u8, said: &Bytes) -> Result<(), Trouble> {
        let mut rest = Rest(said);
        rest.byte()?;
        let plugin = String::from_utf8_lossy(rest.until_nul()).into_owned();
        let salt = rest.0.strip_suffix(&[0]).unwrap_or(rest.0);
        let number = number.wrapping_add(1);
        if plugin == CLEAR {
            return self.send_password(wire, number);
        }
        let Some(proof) = proof(&plugin, self.password, salt) else {
            return Err(Trouble::never(format!(
                "the server asks for a proof of the password by `{plugin}`, which is not supported: let the user log in by \
                 `caching_sha2_password` or `mysql_native_password`"
            )));
        };
        wire.send(number, &proof);
        Ok(())
    }

    /// With `caching_sha2_password`, a server that has not seen the user since its start asks for the password itself.
    fn go_on(&self, wire: &mut Wire, number: u8, said: &Bytes) -> Result<(), Trouble> {
        match said.get(1) {
            Some(3) => Ok(()),
            Some(4) => self.send_password(wire, number.wrapping_add(1)),
            _ => Err(strange().into()),
        }
    }

    fn send_password(&self, wire: &mut Wire, number: u8) -> Result<(), Trouble> {
        if !self.is_private {
            return Err(Trouble::never(
                "the server asks for the password over a connection that is not encrypted: encrypt it with \
                 `sslmode=verify-full`",
            ));
        }
        wire.send(number, &[self.password.as_bytes(), &[0]].concat());
        Ok(())
    }
}

fn refusal(said: &Bytes) -> io::Result<ServerError> {
    let mut rest = Rest(said);
    rest.byte()?;
    ServerError::read(rest)
}

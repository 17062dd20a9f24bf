//! The beginning of a connection: who asks, and the proof of it.

use std::io;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{AuthenticationSaslBody, Message};
use postgres_protocol::message::frontend;

use super::wire::Wire;
use crate::backend::postgres::protocol::answer::strange;
use crate::backend::postgres::protocol::error::ServerError;
use crate::backend::sql::trouble::Trouble;
use crate::types::holder::THIS_PROCESS;

/// User, database and password of a connection.
pub(super) struct Login<'a> {
    pub(super) user: &'a str,
    /// Empty if there is none.
    pub(super) password: &'a str,
    pub(super) database: Option<&'a str>,
    /// Whether the connection is safe from eavesdroppers.
    pub(super) is_private: bool,
}

impl Login<'_> {
    /// Logs in; returns the number of the server's process, if the server reports it.
    pub(super) async fn run(&self, wire: &mut Wire) -> Result<Option<i32>, Trouble> {
        self.start(wire.out()).map_err(|_| {
            Trouble::invalid(
                "url",
                "a user's or a database's name has a NUL character in it",
            )
        })?;
        self.authenticate(wire).await?;
        let mut process = None;
        loop {
            match wire.next().await? {
                Message::BackendKeyData(body) => process = Some(body.process_id()),
                Message::ReadyForQuery(_) => return Ok(process),
                Message::ErrorResponse(body) => {
                    return Err(ServerError::read(body.fields())?.into());
                }
                Message::ParameterStatus(_) | Message::NoticeResponse(_) => {}
                _ => return Err(strange().into()),
            }
        }
    }

    /// Poolers refuse other parameters than these.
    fn start(&self, out: &mut BytesMut) -> io::Result<()> {
        let name = client_name();
        let parameters = [
            ("user", self.user),
            ("client_encoding", "UTF8"),
            ("application_name", &name),
        ];
        let database = self.database.map(|it| ("database", it));
        frontend::startup_message(parameters.into_iter().chain(database), out)
    }

    async fn authenticate(&self, wire: &mut Wire) -> Result<(), Trouble> {
        match wire.next().await? {
            Message::AuthenticationOk => return Ok(()),
            Message::AuthenticationSasl(body) => return self.scram(wire, &body).await,
            Message::AuthenticationCleartextPassword => {
                if !self.is_private {
                    return Err(Trouble::never(
                        "the server asks for the password over a connection that is not encrypted: encrypt it with \
                         `sslmode=verify-full`, or let the server's `pg_hba.conf` ask for `scram-sha-256`",
                    ));
                }
                let password = self.password()?;
                frontend::password_message(password, wire.out()).map_err(|_| unwritable())?;
            }
            Message::AuthenticationMd5Password(_) => {
                return Err(Trouble::never(
                    "the server asks for an MD5 hash of the password, which lets an eavesdropper log in: set \
                     `password_encryption = 'scram-sha-256'` on the server and set the password again",
                ));
            }
            Message::ErrorResponse(body) => return Err(ServerError::read(body.fields())?.into()),
            Message::AuthenticationGss
            | Message::AuthenticationSspi
            | Message::AuthenticationKerberosV5
            | Message::AuthenticationScmCredential => return Err(other_way()),
            _ => return Err(strange().into()),
        }
        accepted(wire.next().await?)
    }

    /// The password need not be sent, and the server proves that it knows it too.
    async fn scram(
        &self,
        wire: &mut Wire,
        offered: &AuthenticationSaslBody,
    ) -> Result<(), Trouble> {
        let mut mechanisms = offered.mechanisms();
        if !mechanisms.any(|it| Ok(it == SCRAM_SHA_256))? {
            return Err(other_way());
        }
        let binding = ChannelBinding::unsupported();
        let mut scram = ScramSha256::new(self.password()?, binding);
        frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), wire.out())?;
        match wire.next().await? {
            Message::AuthenticationSaslContinue(body) => scram.update(body.data())?,
            Message::ErrorResponse(body) => return Err(ServerError::read(body.fields())?.into()),
            _ => return Err(strange().into()),
        }
        frontend::sasl_response(scram.message(), wire.out())?;
        match wire.next().await? {
            Message::AuthenticationSaslFinal(body) => scram.finish(body.data())?,
            Message::ErrorResponse(body) => return Err(ServerError::read(body.fields())?.into()),
            _ => return Err(strange().into()),
        }
        accepted(wire.next().await?)
    }

    fn password(&self) -> Result<&[u8], Trouble> {
        if self.password.is_empty() {
            return Err(Trouble::never(
                "the server asks for a password, and none was given",
            ));
        }
        Ok(self.password.as_bytes())
    }
}

fn accepted(message: Message) -> Result<(), Trouble> {
    match message {
        Message::AuthenticationOk => Ok(()),
        Message::ErrorResponse(body) => Err(ServerError::read(body.fields())?.into()),
        _ => Err(strange().into()),
    }
}

fn other_way() -> Trouble {
    Trouble::never(
        "the server asks for a proof that is not supported here: it must accept SCRAM-SHA-256, or a password over an \
         encrypted connection",
    )
}

fn unwritable() -> Trouble {
    Trouble::never("the password has a NUL character in it, which PostgreSQL does not allow")
}

/// The name that `pg_stat_activity` shows to operators: printable ASCII only.
fn client_name() -> String {
    let host = THIS_PROCESS
        .host
        .replace(|c: char| !c.is_ascii_graphic(), "-");
    format!("lock-runtime:{}@{host}", THIS_PROCESS.id)
}

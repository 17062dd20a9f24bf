//! Errors of Redis: the reasons for a missing reply.

use std::sync::Arc;

use redis::ServerError;

use super::names::KeyNames;
use super::redirect::Redirect;
use super::scripts;
use crate::backend::queue::protocol::trouble::{ServerSaid, Trouble};
use crate::types::error::Cause;

impl Trouble {
    pub(crate) fn from_server(error: &ServerError) -> Self {
        if error.code() == "NOSCRIPT" {
            return Self::NotRun;
        }
        let details = error.details().unwrap_or_default();
        if let Some(redirect) = Redirect::parse(error.code(), details) {
            return Self::NotNow(Arc::new(redirect));
        }
        let text = format!("{} {details}", error.code());
        let never = is_final(&text);
        let text = refused_command(&text).unwrap_or(text);
        Self::of(never, Arc::new(ServerSaid(text)))
    }

    /// An error while connecting.
    pub(crate) fn from_connecting(error: redis::RedisError, names: &KeyNames) -> Self {
        let never = is_for_good(&error);
        let text = error.to_string();
        let said = refused_command(&text)
            .or_else(|| refused_channel(&text, names))
            .or_else(|| missing_password(&text))
            .or_else(|| read_only(&error));
        Self::of(
            never,
            match said {
                Some(text) => Arc::new(ServerSaid(text)),
                None => Arc::new(error),
            },
        )
    }

    fn of(never: bool, cause: Cause) -> Self {
        if never {
            Self::Never(cause)
        } else {
            Self::NotNow(cause)
        }
    }

    /// Whether the server does not have the database that was chosen.
    pub(crate) fn is_no_such_database(&self) -> bool {
        self.cause().to_string().contains(NO_SUCH_DATABASE)
    }

    /// The target to which a node of a cluster redirects a call that it has not carried out.
    pub(crate) fn redirect(&self) -> Option<&Redirect> {
        match self {
            Self::NotNow(cause) => cause.downcast_ref(),
            _ => None,
        }
    }

    /// Whether another node may serve the lock now.
    pub(crate) fn is_about_cluster(&self) -> bool {
        let said = [READONLY, "CLUSTERDOWN", "MASTERDOWN"];
        let Self::NotNow(cause) = self else {
            return false;
        };
        let text = cause.to_string();
        said.iter().any(|code| text.contains(code))
    }

    /// Whether the server belongs to no cluster.
    pub(crate) fn is_no_cluster(&self) -> bool {
        self.cause().to_string().contains(NO_CLUSTER)
    }

    /// Whether the server belongs to a cluster, where one server was expected.
    pub(crate) fn is_in_cluster(&self) -> bool {
        self.cause().to_string().contains(IN_CLUSTER)
    }

    /// Whether the server is a replica, which may have been a master before.
    pub(crate) fn is_replica(&self) -> bool {
        let says = |cause: &str| cause.contains(READONLY) || cause.contains(IS_REPLICA);
        matches!(self, Self::NotNow(cause) if says(&cause.to_string()))
    }
}

/// The error of a replica for a script that writes, in the words of its later errors.
fn read_only(error: &redis::RedisError) -> Option<String> {
    let code = error.code().filter(|code| *code == READONLY)?;
    Some(format!("{code} {}", error.detail().unwrap_or_default()))
}

/// Whether what went wrong while connecting will not go away by itself.
pub(crate) fn is_for_good(error: &redis::RedisError) -> bool {
    use redis::ErrorKind;

    // The text of an error that the client library knows is without its code.
    error.code().is_some_and(is_final)
        || is_final(&error.to_string())
        || matches!(
            error.kind(),
            ErrorKind::AuthenticationFailed
                | ErrorKind::InvalidClientConfig
                | ErrorKind::RESP3NotSupported
        )
}

/// The error of a replica for a write.
const READONLY: &str = "READONLY";
const NO_SUCH_DATABASE: &str = "DB index is out of range";
const NO_CLUSTER: &str = "cluster support disabled";
pub(crate) const IN_CLUSTER: &str = "the server is part of a cluster";

/// What is said of a server that writes nothing.
pub(crate) const IS_REPLICA: &str = "the server is a replica, and not the master";

/// Whether an error will not go away by itself. Inside a script, depending on the
/// server's version, some errors keep their code and others come as `ERR` with the
/// code in the text.
fn is_final(text: &str) -> bool {
    const FINAL: [&str; 11] = [
        "NOAUTH",
        "WRONGPASS",
        "NOPERM",
        // A `SELECT` that is forbidden loses its code in the client library.
        "has no permissions to run",
        "WRONGTYPE",
        "The user executing the script can't",
        "ACL failure in script",
        NO_SUCH_DATABASE,
        NO_CLUSTER,
        IN_CLUSTER,
        "CROSSSLOT",
    ];
    FINAL.iter().any(|code| text.contains(code))
}

/// Servers before 7.2 say which line of a script was refused, and not its command.
fn refused_command(text: &str) -> Option<String> {
    let command = scripts::refused_command(text)?;
    Some(format!(
        "NOPERM the user has no right to run {command}, which the scripts do"
    ))
}

/// The server speaks of the command that it got first.
fn missing_password(text: &str) -> Option<String> {
    let asked = text.contains("NOAUTH");
    asked.then(|| "the server asks for a password, and none was given".to_owned())
}

/// No server says which channel it refuses.
fn refused_channel(text: &str, names: &KeyNames) -> Option<String> {
    let (own, common) = (&names.channel, &names.common);
    let refused = text.contains("permissions") && text.contains("channel");
    refused
        .then(|| format!("NOPERM the user has no permissions to the channels {own} and {common}"))
}

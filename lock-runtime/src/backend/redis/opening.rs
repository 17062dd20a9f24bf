//! Opens a connection of the client library, without time limits of its own.

use std::error::Error as _;
use std::future::Future;
use std::io;
use std::pin::Pin;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, RedisConnectionInfo, RedisError, RedisResult};

use crate::backend::transport::distrust::Distrust;
use crate::backend::transport::endpoint::{Route, StreamOptions};
use crate::types::error::Cause;

/// Reads and writes while it is polled; ends with the connection.
pub(crate) type Io = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(crate) async fn open(
    route: &Route,
    login: &RedisConnectionInfo,
    config: AsyncConnectionConfig,
) -> RedisResult<(MultiplexedConnection, Io)> {
    let config = config
        .set_response_timeout(None)
        .set_connection_timeout(None);
    let options = StreamOptions {
        // A command that is still buffered dies with a dropped connection.
        discards_unsent: true,
        ..StreamOptions::default()
    };
    let stream = route.open(options).await?;
    let opened = MultiplexedConnection::new_with_config(login, stream, config).await;
    let (connection, io) = opened.map_err(|error| explained(error, route))?;
    Ok((connection, Box::pin(io)))
}

/// A server that encrypts ends a connection on which it reads a command at once.
fn explained(error: RedisError, route: &Route) -> RedisError {
    let is_cut = error.is_io_error() || error.kind() == ErrorKind::Parse;
    if !is_cut || route.is_encrypted() {
        return error;
    }
    let why = "the server closed the connection: perhaps it encrypts on this port, write `rediss` for `redis` in the URL";
    io::Error::other(why).into()
}

/// For a connection that ended without an error of its own.
pub(crate) fn closed() -> RedisError {
    io::Error::other("the server closed the connection").into()
}

/// Why client and server do not trust each other, if that is what went wrong.
pub(crate) fn distrust(error: &RedisError) -> Option<Distrust> {
    // The client library hands out the pointer in which it keeps the error.
    let error = error.source()?.downcast_ref::<Cause>()?;
    Distrust::find(error.downcast_ref()?)
}

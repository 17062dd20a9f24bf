//! Opens a connection of the client library, without time limits of its own.

use std::error::Error as _;
use std::future::Future;
use std::io;
use std::pin::Pin;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisError, RedisResult};

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
    let (connection, io) = MultiplexedConnection::new_with_config(login, stream, config).await?;
    Ok((connection, Box::pin(io)))
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

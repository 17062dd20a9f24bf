//! The questions to one sentinel, and its answers.

use std::collections::HashMap;
use std::io;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, PushInfo, RedisConnectionInfo, RedisResult, Value, from_redis_value,
};
use tokio::sync::mpsc;

use crate::backend::redis::opening::{self, Io};
use crate::backend::transport::endpoint::Route;
use crate::types::authority::Host;

/// The server that a sentinel names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Master {
    pub(crate) host: Host,
    /// Grows with every failover; restarts if operators let sentinels watch the service again.
    pub(crate) epoch: u64,
}

/// One sentinel, and how to reach it.
pub(super) struct Sentinel {
    pub(super) route: Route,
    pub(super) login: RedisConnectionInfo,
}

impl Sentinel {
    /// Opens a connection, which reads and writes while the future is polled and ends
    /// with it.
    pub(super) async fn open(
        &self,
        pushes: mpsc::UnboundedSender<PushInfo>,
    ) -> RedisResult<(MultiplexedConnection, Io)> {
        let config = AsyncConnectionConfig::new().set_push_sender(pushes);
        opening::open(&self.route, &self.login, config).await
    }

    /// Connects and asks once.
    pub(super) async fn ask(&self, service: &str) -> RedisResult<Option<Master>> {
        let (pushes, _ignored) = mpsc::unbounded_channel();
        let (mut connection, io) = self.open(pushes).await?;
        tokio::select! {
            answer = master(&mut connection, service) => answer,
            () = io => Err(closed()),
        }
    }
}

/// The master that a sentinel names, if it knows the service.
pub(super) async fn master(
    connection: &mut MultiplexedConnection,
    service: &str,
) -> RedisResult<Option<Master>> {
    let mut question = redis::pipe();
    // While a sentinel leads a failover, this shows the old address beside the new epoch.
    question.cmd("SENTINEL").arg("MASTER").arg(service);
    question
        .cmd("SENTINEL")
        .arg("GET-MASTER-ADDR-BY-NAME")
        .arg(service);
    read(connection.send_packed_commands(&question, 0, 2).await?)
}

/// Reads the answers to both questions.
pub(in crate::backend::redis) fn read(mut answers: Vec<Value>) -> RedisResult<Option<Master>> {
    let address = answers.pop().unwrap_or(Value::Nil).extract_error()?;
    let Some((name, port)) = from_redis_value(address)? else {
        return Ok(None);
    };
    let details = answers.pop().unwrap_or(Value::Nil).extract_error()?;
    let details: HashMap<String, String> = from_redis_value(details)?;
    let epoch = details.get("config-epoch").and_then(|it| it.parse().ok());
    Ok(Some(Master {
        host: Host { name, port },
        epoch: epoch.unwrap_or(0),
    }))
}

fn closed() -> redis::RedisError {
    io::Error::other("the sentinel closed the connection").into()
}

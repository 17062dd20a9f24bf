//! The ceiling: what a bare client of the same library can do. It neither waits nor renews.

use std::sync::LazyLock;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo, Script};

use super::locks::{Locks, TTL};

static TAKE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then \
         return redis.call('INCR', KEYS[2]) end \
         return 0",
    )
});

static RELEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end \
         return 0",
    )
});

/// One multiplexed connection.
#[derive(Clone, Debug)]
pub(crate) struct Ceiling(MultiplexedConnection);

impl Ceiling {
    /// One bare round trip.
    pub(crate) async fn ping(&mut self) {
        let answer: String = redis::cmd("PING")
            .query_async(&mut self.0)
            .await
            .expect("an answer");
        debug_assert_eq!(answer, "PONG");
    }
}

impl Locks for Ceiling {
    type Guard = (String, String);

    async fn connect(url: &str) -> Self {
        let info = url
            .into_connection_info()
            .expect("a URL")
            .set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let client = Client::open(info).expect("a URL");
        let connection = client
            .get_multiplexed_async_connection_with_config(&config)
            .await;
        Self(connection.expect("a server"))
    }

    async fn take(&self, key: &str) -> Self::Guard {
        let token = format!("{:032x}", fastrand::u128(..));
        let fence: u64 = TAKE
            .key(key)
            .key("fence")
            .arg(&token)
            .arg(TTL.as_millis() as u64)
            .invoke_async(&mut self.0.clone())
            .await
            .expect("an answer");
        assert_ne!(fence, 0, "{key} is held, and the ceiling does not wait");
        (key.to_owned(), token)
    }

    async fn free(&self, (key, token): Self::Guard) {
        let gone: u64 = RELEASE
            .key(key)
            .arg(token)
            .invoke_async(&mut self.0.clone())
            .await
            .expect("an answer");
        assert_eq!(gone, 1, "the lock was lost");
    }
}

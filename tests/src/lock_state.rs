//! What the server knows of one lock.

use redis::{FromRedisValue, from_redis_value};

use crate::{RedisServer, TIME_LIMIT, eventually, protocol::token_of};

impl RedisServer {
    /// The token of the owner of lock `name`.
    pub async fn owner(&self, name: &str) -> Option<String> {
        let value: Option<String> = read(self.cmd(&["GET", &Self::owner_key(name)]).await);
        value.map(|value| token_of(&value).to_owned())
    }

    /// How many wait for lock `name`.
    pub async fn waiting(&self, name: &str) -> u64 {
        read(self.cmd(&["ZCARD", &Self::queue_key(name)]).await)
    }

    /// Returns when so many wait for lock `name`.
    pub async fn queued(&self, name: &str, waiters: u64) {
        eventually(TIME_LIMIT, async || self.waiting(name).await == waiters).await;
    }

    /// Everything the server has of lock `name`.
    pub async fn traces(&self, name: &str) -> Vec<String> {
        self.keys(&format!("{}*", Self::owner_key(name))).await
    }

    /// How many connections of lock managers are ready for grants.
    pub async fn listeners(&self) -> usize {
        let channels = self.cmd(&["PUBSUB", "CHANNELS", "lock:grant:*"]).await;
        read::<Vec<String>>(channels).len()
    }

    /// The server's numbers of the connections that are ready for grants.
    pub async fn subscribers(&self) -> Vec<String> {
        let list: String = read(self.cmd(&["CLIENT", "LIST", "TYPE", "pubsub"]).await);
        let number = |line: &str| line.split([' ', '=']).nth(1).map(ToOwned::to_owned);
        list.lines().filter_map(number).collect()
    }

    /// How often the server answered with this error.
    pub async fn errors(&self, code: &str) -> u64 {
        let statistics: String = read(self.cmd(&["INFO", "errorstats"]).await);
        let prefix = format!("errorstat_{code}:count=");
        let count = statistics
            .lines()
            .find_map(|line| line.strip_prefix(&prefix));
        count.map_or(0, |count| count.parse().expect("a count of errors"))
    }
}

fn read<T: FromRedisValue>(value: redis::Value) -> T {
    from_redis_value(value).unwrap_or_else(|error| panic!("an odd answer: {error}"))
}

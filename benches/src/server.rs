//! Statistics of the server.

use support::RedisServer;

use crate::systems::System;

/// Counters since the last reset.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Statistics {
    /// Calls of scripts.
    pub(crate) scripts: f64,
    /// `SET`, also within scripts.
    pub(crate) sets: f64,
    /// Published messages.
    pub(crate) pushes: f64,
    /// How long the scripts took, in µs.
    pub(crate) script_us: f64,
}

impl Statistics {
    /// Calls of scripts, and the commands of a system that takes locks without one.
    pub(crate) fn commands(&self, system: System) -> f64 {
        let sets = if system.takes_with_set() {
            self.sets
        } else {
            0.0
        };
        self.scripts + sets
    }
}

/// Sets the counters to zero.
pub(crate) async fn reset(server: &RedisServer) {
    server.cmd(&["CONFIG", "RESETSTAT"]).await;
}

/// The counters.
pub(crate) async fn statistics(server: &RedisServer) -> Statistics {
    let text = info(server, "commandstats").await;
    let mut all = Statistics::default();
    for line in text.lines() {
        let Some((name, counters)) = line
            .strip_prefix("cmdstat_")
            .and_then(|line| line.split_once(':'))
        else {
            continue;
        };
        let counter = |name| counter(counters, name);
        match name {
            "evalsha" | "eval" => {
                all.scripts += counter("calls=");
                all.script_us += counter("usec=");
            }
            "set" => all.sets += counter("calls="),
            "publish" => all.pushes += counter("calls="),
            _ => {}
        }
    }
    all
}

/// CPU time of the server's process, in seconds.
pub(crate) async fn processor_seconds(server: &RedisServer) -> f64 {
    let text = info(server, "cpu").await;
    let values = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let main = ["used_cpu_sys", "used_cpu_user"].contains(&name);
        main.then(|| value.parse::<f64>().ok())?
    });
    values.sum()
}

/// CPU time of the processes of several servers, in seconds.
pub(crate) async fn processor_seconds_of(servers: &[RedisServer]) -> f64 {
    let mut sum = 0.0;
    for one in servers {
        sum += processor_seconds(one).await;
    }
    sum
}

/// How much memory the server uses, in bytes.
pub(crate) async fn memory(server: &RedisServer) -> f64 {
    let text = info(server, "memory").await;
    let used = text
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"));
    used.and_then(|used| used.parse().ok()).unwrap_or(f64::NAN)
}

/// The server's version.
pub(crate) async fn version(server: &RedisServer) -> String {
    let text = info(server, "server").await;
    let version = text
        .lines()
        .find_map(|line| line.strip_prefix("redis_version:"));
    version.unwrap_or("unknown").to_owned()
}

/// How many keys there are.
pub(crate) async fn keys(server: &RedisServer) -> u64 {
    read(server.cmd(&["DBSIZE"]).await)
}

/// How many keys match a pattern.
pub(crate) async fn keys_like(server: &RedisServer, pattern: &str) -> u64 {
    let keys: Vec<String> = read(server.cmd(&["KEYS", pattern]).await);
    keys.len() as u64
}

async fn info(server: &RedisServer, section: &str) -> String {
    read(server.cmd(&["INFO", section]).await)
}

fn read<T: redis::FromRedisValue>(value: redis::Value) -> T {
    redis::from_redis_value(value).expect("an answer of the type asked for")
}

fn counter(counters: &str, name: &str) -> f64 {
    let value = counters.split(',').find_map(|part| part.strip_prefix(name));
    value.and_then(|value| value.parse().ok()).unwrap_or(0.0)
}

//! A client that calls the scripts of the protocol by hand.

use redis::{FromRedisValue, Value, aio::MultiplexedConnection};

use crate::{
    RedisServer, lua,
    protocol::{self, token, token_of},
    server::connect,
    unique,
};

/// One of many calls, with the number of its token.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// With that ttl.
    Acquire(u32, u32),
    /// The same, saying that more wait.
    Join(u32, u32),
    /// To that ttl.
    Renew(u32, u32),
    /// Lets go.
    Release(u32),
    /// With that ttl, and this position.
    Return(u32, u32, u64),
    /// Leaves the queue, in which it has that ttl.
    Leave(u32, u32),
}

impl Step {
    fn acquires(self) -> bool {
        matches!(self, Self::Acquire(..) | Self::Join(..) | Self::Return(..))
    }

    fn arguments(self) -> [String; 2] {
        match self {
            Self::Acquire(number, ttl) => [token(number), ttl.to_string()],
            Self::Join(number, ttl) => [token(number), format!("+{ttl}")],
            Self::Renew(number, ttl) => [token(number), format!("={ttl}")],
            Self::Release(number) => [token(number), String::new()],
            Self::Return(number, ttl, position) => [token(number), format!("{ttl}@{position}")],
            Self::Leave(number, ttl) => [token(number), format!("<{ttl}")],
        }
    }
}

/// The text of a script of the protocol.
pub fn script_text(name: &str) -> &'static str {
    match name {
        "acquire" => lua::ACQUIRE,
        "ask" => lua::ASK,
        "release" => lua::RELEASE,
        "renew" => lua::RENEW,
        "force" => lua::FORCE,
        "many" => lua::MANY,
        "many declared" => lua::MANY_DECLARED,
        other => panic!("no script is called {other}"),
    }
}

/// A connection that speaks the protocol by hand, on one lock.
#[derive(Debug)]
pub struct Peer {
    /// Where everything is sent.
    pub connection: MultiplexedConnection,
    /// The lock.
    pub lock: String,
    /// Where the peer hears of its grants.
    pub channel: String,
    /// In which kind it takes the lock: `x`, `r`, or `p` and a number; `x+` where it says
    /// that more of it wait, and `x-` to be granted alone.
    pub kind: String,
    /// Whether each ttl has passed by the time at which a script sets it: the server deletes the key then.
    pub ttls_have_passed: bool,
}

/// Goes before a script whose ttls have passed.
const TTLS_HAVE_PASSED: &str = "
local server = redis
local redis = setmetatable({}, {__index = server})
function redis.call(command, key, ...)
  if command == 'PEXPIRE' then return server.call('PEXPIRE', key, 0) end
  return server.call(command, key, ...)
end
";

impl Peer {
    /// A peer that listens on its channel, unless it is to be dead.
    pub async fn new(server: &RedisServer, lock: &str, listens: bool) -> Self {
        let mut connection = connect(&format!("{}?protocol=resp3", server.url())).await;
        let channel = unique("lock:grant");
        if listens {
            let subscribed = connection.subscribe(&channel).await;
            subscribed.expect("a peer can subscribe");
        }
        Self {
            connection,
            lock: lock.to_owned(),
            channel,
            kind: "x".to_owned(),
            ttls_have_passed: false,
        }
    }

    /// The kind as it stands in members.
    fn code(&self) -> &str {
        self.kind.trim_end_matches(['+', '-'])
    }

    /// The same, but it takes the lock in that kind.
    pub fn of_kind(mut self, kind: &str) -> Self {
        kind.clone_into(&mut self.kind);
        self
    }

    async fn eval<T: FromRedisValue>(
        &mut self,
        script: &str,
        args: &[String],
    ) -> redis::RedisResult<T> {
        let mut cmd = redis::cmd("EVAL");
        let before = if self.ttls_have_passed {
            TTLS_HAVE_PASSED
        } else {
            ""
        };
        cmd.arg(before.to_owned() + script)
            .arg(2)
            .arg(RedisServer::owner_key(&self.lock))
            .arg(RedisServer::FENCE_KEY);
        for arg in args {
            cmd.arg(arg);
        }
        cmd.query_async(&mut self.connection).await
    }

    /// What a script answers to arguments that this client would not send.
    ///
    /// # Errors
    ///
    /// What the server says where the script fails.
    pub async fn call(&mut self, script: &str, args: &[&str]) -> redis::RedisResult<Value> {
        let script = script_text(script);
        let args: Vec<_> = args.iter().copied().map(str::to_owned).collect();
        self.eval(script, &args).await
    }

    /// The answer of `acquire`, to wait or to try.
    pub async fn acquire(&mut self, number: u32, ttl: u32, wait: bool) -> Vec<String> {
        let answer = self.try_acquire(number, ttl, wait).await;
        answer.expect("the script runs")
    }

    /// The same.
    ///
    /// # Errors
    ///
    /// What the server says where the script fails.
    pub async fn try_acquire(
        &mut self,
        number: u32,
        ttl: u32,
        wait: bool,
    ) -> redis::RedisResult<Vec<String>> {
        let channel = wait.then(|| self.channel.clone());
        let mut args = vec![token(number), ttl.to_string(), channel.unwrap_or_default()];
        if self.kind != "x" {
            args.push(self.kind.clone());
        }
        Ok(match self.eval(lua::ACQUIRE, &args).await? {
            Value::BulkString(text) => {
                let text = String::from_utf8(text).expect("text");
                let (name, fence) = text.split_once('\n').expect("a fence");
                [name, "granted", fence].map(str::to_owned).to_vec()
            }
            other => Vec::from_redis_value(other).expect("texts"),
        })
    }

    /// How a token of this peer is written in the queue.
    pub fn member(&self, number: u32, ttl: u32) -> String {
        protocol::member(&token(number), self.code(), ttl, &self.channel)
    }

    /// The standing of one token: `granted`, `waiting` or `gone`.
    pub async fn ask(&mut self, number: u32, ttl: u32) -> String {
        let args = [self.channel.clone(), self.member(number, ttl)];
        let answer: Vec<Value> = self.eval(lua::ASK, &args).await.expect("the script runs");
        let standing = Vec::<String>::from_redis_value_ref(&answer[2]).expect("texts");
        assert_eq!(standing[0], token(number), "every reply carries its token");
        standing[1].clone()
    }

    /// Whether the lock was this token's.
    pub async fn release(&mut self, number: u32) -> bool {
        self.release_into_cooldown(number, 0).await
    }

    /// The same, and the lock stays closed for so many milliseconds.
    pub async fn release_into_cooldown(&mut self, number: u32, cooldown: u32) -> bool {
        let mut args = vec![token(number)];
        if cooldown > 0 {
            args.extend([String::new(), cooldown.to_string()]);
        }
        self.ours(lua::RELEASE, number, &args).await
    }

    /// Takes a token out of the queue; whether it owned the lock meanwhile.
    pub async fn leave(&mut self, number: u32, ttl: u32) -> bool {
        let args = [token(number), self.member(number, ttl)];
        self.ours(lua::RELEASE, number, &args).await
    }

    /// Whether the lock was this token's, and has that ttl now.
    pub async fn renew(&mut self, number: u32, ttl: u32) -> bool {
        let args = [token(number), ttl.to_string(), self.code().to_owned()];
        self.ours(lua::RENEW, number, &args).await
    }

    /// Whether the lock was this token's, and is closed for so many milliseconds by a ticket of that number.
    pub async fn issue(&mut self, number: u32, ticket: u32, time: u32) -> bool {
        let ticket = format!("={} 1@host", token(ticket));
        let args = [token(number), ticket, time.to_string()];
        self.ours(lua::ISSUE, number, &args).await
    }

    /// Whether the lock was this token's, which holds it as a reader from now on.
    pub async fn downgrade(&mut self, number: u32) -> bool {
        self.ours(lua::DOWNGRADE, number, &[token(number)]).await
    }

    /// The fence of this token, if it could adopt that ticket.
    pub async fn adopt(&mut self, number: u32, ticket: u32, ttl: u32) -> Option<u64> {
        let ticket = format!("={}", token(ticket));
        let args = [
            token(number),
            ttl.to_string(),
            self.code().to_owned(),
            ticket,
        ];
        match self.eval(lua::ADOPT, &args).await.expect("it runs") {
            Value::BulkString(text) => {
                let text = String::from_utf8(text).expect("text");
                let fence = text.strip_prefix(&token(number)).expect("its token");
                Some(fence.trim_start().parse().expect("a fence"))
            }
            other => {
                let texts = Vec::<String>::from_redis_value(other).expect("texts");
                assert_eq!(texts, [token(number), "no ticket".to_owned()]);
                None
            }
        }
    }

    /// Whether a script says that the lock was this token's.
    async fn ours(&mut self, script: &str, number: u32, args: &[String]) -> bool {
        let answer: String = self.eval(script, args).await.expect("it runs");
        let name = answer.strip_prefix('-').unwrap_or(&answer);
        assert_eq!(name, token(number), "every reply carries its token");
        name == answer
    }

    /// What each of these calls on these locks is answered, sent as one.
    pub async fn many(&mut self, calls: &[(&str, Step)]) -> Vec<Value> {
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(lua::MANY).arg(calls.len() + 1);
        cmd.arg(RedisServer::FENCE_KEY);
        for (lock, _) in calls {
            cmd.arg(RedisServer::owner_key(lock));
        }
        let acquires = calls.iter().filter(|it| it.1.acquires());
        cmd.arg(&self.channel).arg(acquires.count());
        for (_, step) in calls {
            cmd.arg(&step.arguments());
        }
        let request = self.connection.send_packed_command(&cmd).await;
        let Ok(Value::Array(mut answers)) = request else {
            panic!("{request:?}");
        };
        let [first, _] = calls[0].1.arguments();
        let name = String::from_redis_value(answers.remove(0)).expect("text");
        assert_eq!(name, first, "every reply carries its token");
        assert_eq!(answers.len(), calls.len());
        answers
    }

    /// What is noted of the grant to a token.
    pub async fn note(&mut self, number: u32) -> Option<String> {
        let note = RedisServer::note_key(&self.lock, &token(number));
        self.cmd(&["GET", &note]).await
    }

    /// Raises the counter to the server's clock.
    pub async fn open(&mut self) -> u64 {
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(lua::OPEN).arg(1).arg(RedisServer::FENCE_KEY);
        cmd.query_async(&mut self.connection).await.expect("runs")
    }

    /// The holders that an overview of the lock names, so many at the most, and how many it counts.
    pub async fn overview(&mut self, most: usize) -> (Vec<String>, u64) {
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(lua::OVERVIEW).arg(2).arg(RedisServer::FENCE_KEY);
        cmd.arg(RedisServer::owner_key(&self.lock));
        cmd.arg(most).arg(1).arg(1);
        let answer = cmd.query_async(&mut self.connection).await;
        let (_, _, lock): (String, String, Vec<Value>) = answer.expect("runs");
        let text = |it: &Value| redis::from_redis_value_ref(it).expect("text");
        let holders = lock[6..].chunks_exact(3);
        let names = holders.map(|facts| text(&facts[0])).collect();
        (
            names,
            redis::from_redis_value_ref(&lock[2]).expect("a number"),
        )
    }

    /// Any other command.
    pub async fn cmd<T: FromRedisValue>(&mut self, words: &[&str]) -> T {
        let mut cmd = redis::cmd(words[0]);
        for word in &words[1..] {
            cmd.arg(word);
        }
        cmd.query_async(&mut self.connection).await.expect("runs")
    }

    /// The token of the owner.
    pub async fn holder(&mut self) -> Option<String> {
        let owner = RedisServer::owner_key(&self.lock);
        let value: Option<String> = self.cmd(&["GET", &owner]).await;
        value.map(|value| token_of(&value).to_owned())
    }

    /// `PTTL` of the owner.
    pub async fn ttl(&mut self) -> i64 {
        let owner = RedisServer::owner_key(&self.lock);
        self.cmd(&["PTTL", &owner]).await
    }
}

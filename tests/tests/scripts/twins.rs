//! Locks that are kept twice, once by single calls and once by many at a time: both are to be answered alike, look
//! alike, and be whole. The clock of the scripts stands still until the test moves it.

use std::collections::HashMap;

use redis::{FromRedisValue as _, Pipeline, Value, aio::MultiplexedConnection};
use tests::{Peer, RedisServer, script_text, token};

/// The locks.
pub(crate) const LOCKS: [&str; 2] = ["a", "b"];
/// The connections; the last one is deaf.
pub(crate) const CHANNELS: [&str; 3] = ["grant:0", "grant:1", "grant:2"];
pub(crate) const TTL: &str = "60000";
pub(crate) const SECOND: u64 = 1_000_000;

const SILENCE: u64 = 3 * SECOND;
const TWINS: [&str; 2] = ["single", "many"];
const SCRIPTS: [&str; 6] = ["acquire", "ask", "release", "renew", "force", "many"];

/// A call of a script about one lock.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) script: &'static str,
    pub(crate) lock: usize,
    pub(crate) args: Vec<String>,
}

/// One of many calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) lock: usize,
    pub(crate) number: u32,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum What {
    /// With what stands behind the kind.
    Acquire(&'static str),
    /// The same with a position.
    Return(&'static str, u64),
    Renew,
    Release,
    /// Leaves the queue.
    Leave,
}

/// An answer, but for what differs from call to call.
#[derive(Debug, PartialEq)]
enum Answer {
    Granted,
    Ours(bool),
    /// Where, behind whom, and beside how many.
    Waiting(Vec<String>),
}

/// What is kept of a lock: its owner, and queue, seen and holders with their scores.
pub(crate) type Kept = (String, Vec<String>, Vec<String>, Vec<String>);

pub(crate) struct Twins {
    pub(crate) now: u64,
    /// Whether no connection falls silent.
    all_live: bool,
    connection: MultiplexedConnection,
    declared: bool,
    scripts: HashMap<&'static str, String>,
    check: String,
    /// The last fence of each lock of each twin.
    fences: HashMap<(usize, usize), u64>,
    // They hear of their grants.
    _listener: Peer,
}

impl Twins {
    pub(crate) async fn new(server: &RedisServer, declared: bool) -> Self {
        let mut listener = Peer::new(server, "none", false).await;
        for channel in &CHANNELS[..2] {
            listener
                .connection
                .subscribe(*channel)
                .await
                .expect("heard");
        }
        let mut connection = server.connection().await;
        let mut scripts = HashMap::new();
        for name in SCRIPTS {
            let kept = if declared && name == "many" {
                "many declared"
            } else {
                name
            };
            let text = script_text(kept).replace("call('TIME')", "call('LRANGE', 'clock', 0, 1)");
            scripts.insert(name, load(&mut connection, &text).await);
        }
        Self {
            now: 0,
            all_live: true,
            check: load(&mut connection, include_str!("twins.lua")).await,
            connection,
            declared,
            scripts,
            fences: HashMap::new(),
            _listener: listener,
        }
    }

    /// Nothing is kept any more, and this is the time; `all_live` if no connection will fall silent.
    pub(crate) async fn begin(&mut self, now: u64, all_live: bool) {
        (self.now, self.all_live) = (now, all_live);
        self.fences.clear();
        let () = redis::cmd("FLUSHDB")
            .query_async(&mut self.connection)
            .await
            .expect("empty");
    }

    /// The same calls of single scripts to both.
    pub(crate) async fn call(&mut self, calls: &[Call]) -> Vec<Kept> {
        let mut pipeline = self.pipeline();
        for twin in 0..TWINS.len() {
            for call in calls {
                self.add(&mut pipeline, twin, call);
            }
        }
        let answers = self.send(pipeline).await;
        let [single, many] = [&answers[..calls.len()], &answers[calls.len()..]];
        for (call, (single, many)) in calls.iter().zip(single.iter().zip(many)) {
            if call.script == "acquire" {
                let alone = self.read(0, call.lock, single);
                assert_eq!(alone, self.read(1, call.lock, many), "{call:?}");
            }
        }
        self.check(&format!("{calls:?}")).await
    }

    /// The same steps of a connection, one by one and together.
    pub(crate) async fn steps(&mut self, channel: &str, steps: &[Step]) -> Vec<Kept> {
        let mut pipeline = self.pipeline();
        for step in steps {
            self.add(&mut pipeline, 0, &step.alone(channel));
        }
        self.add_many(&mut pipeline, channel, steps);
        let mut answers = self.send(pipeline).await;
        let many: Vec<Value> =
            Vec::from_redis_value(answers.pop().expect("an answer")).expect("a list");
        assert_eq!(many.len(), steps.len() + 1);
        for (step, (single, many)) in steps.iter().zip(answers.iter().zip(&many[1..])) {
            let single = self.read(0, step.lock, single);
            assert_eq!(
                single,
                self.read(1, step.lock, many),
                "{step:?} of {steps:?}"
            );
        }
        self.check(&format!("{channel}: {steps:?}")).await
    }

    /// Something happens to both, given the owner.
    pub(crate) async fn happen(
        &mut self,
        lock: usize,
        commands: impl Fn(String) -> Vec<Vec<String>>,
    ) {
        let mut pipeline = self.pipeline();
        for twin in TWINS {
            for words in commands(format!("{twin}:{{{}}}", LOCKS[lock])) {
                pipeline.cmd(&words[0]).arg(&words[1..]);
            }
        }
        self.send(pipeline).await;
    }

    fn pipeline(&self) -> Pipeline {
        let mut pipeline = redis::pipe();
        let (seconds, micros) = (self.now / SECOND, self.now % SECOND);
        pipeline.cmd("DEL").arg("clock").ignore();
        pipeline
            .cmd("RPUSH")
            .arg("clock")
            .arg(seconds)
            .arg(micros)
            .ignore();
        pipeline
    }

    async fn send(&mut self, pipeline: Pipeline) -> Vec<Value> {
        let answers = pipeline.query_async(&mut self.connection).await;
        answers.expect("the scripts run")
    }

    fn keys(&self, twin: usize, lock: usize) -> Vec<String> {
        let (twin, owner) = (TWINS[twin], format!("{}:{{{}}}", TWINS[twin], LOCKS[lock]));
        if !self.declared {
            return vec![owner, format!("{twin}:fence")];
        }
        let parts = ["", ":f", ":q", ":s", ":h"];
        parts.iter().map(|part| format!("{owner}{part}")).collect()
    }

    fn add(&self, pipeline: &mut Pipeline, twin: usize, call: &Call) {
        let mut keys = self.keys(twin, call.lock);
        if call.script == "renew" {
            keys.truncate(if self.declared { 1 } else { 2 });
        }
        let cmd = pipeline.cmd("EVALSHA").arg(&self.scripts[call.script]);
        cmd.arg(keys.len()).arg(&keys).arg(&call.args);
        if keys.len() == 5 {
            cmd.arg("");
        }
    }

    fn add_many(&self, pipeline: &mut Pipeline, channel: &str, steps: &[Step]) {
        let keys = if self.declared {
            self.keys(1, steps[0].lock)
        } else {
            let mut keys = vec![format!("{}:fence", TWINS[1])];
            keys.extend(steps.iter().map(|it| self.keys(1, it.lock).swap_remove(0)));
            keys
        };
        let acquires = steps
            .iter()
            .filter(|it| matches!(it.what, What::Acquire(_) | What::Return(..)));
        let cmd = pipeline.cmd("EVALSHA").arg(&self.scripts["many"]);
        cmd.arg(keys.len())
            .arg(keys)
            .arg(channel)
            .arg(acquires.count());
        for step in steps {
            let what = match step.what {
                What::Acquire(mark) => format!("{mark}{TTL}"),
                What::Return(mark, position) => format!("{mark}{TTL}@{position}"),
                What::Renew => format!("={TTL}"),
                What::Release => String::new(),
                What::Leave => format!("<{TTL}"),
            };
            cmd.arg(token(step.number)).arg(what);
        }
        if self.declared {
            cmd.arg("");
        }
    }

    fn read(&mut self, twin: usize, lock: usize, answer: &Value) -> Answer {
        let fence = match answer {
            Value::Int(ours @ (0 | 1)) => return Answer::Ours(*ours == 1),
            Value::Int(fence) => fence.unsigned_abs(),
            Value::BulkString(_) => {
                let text = String::from_redis_value_ref(answer).expect("text");
                let Some((_, fence)) = text.split_once('\n') else {
                    return Answer::Ours(!text.starts_with('-'));
                };
                fence.parse().expect("a fence")
            }
            _ => {
                let mut words: Vec<String> = Vec::from_redis_value_ref(answer).expect("texts");
                // The holder's time and the first waiter's time are left out: they differ between the two calls.
                if words.len() > 3 {
                    words.truncate(6);
                    words.remove(3);
                }
                return Answer::Waiting(words);
            }
        };
        let last = self.fences.insert((twin, lock), fence).unwrap_or(0);
        assert!(last < fence, "{fence} after {last}");
        Answer::Granted
    }

    /// Both are whole and alike: what is kept of each lock.
    async fn check(&mut self, after: &str) -> Vec<Kept> {
        let mut pipeline = redis::pipe();
        for twin in TWINS {
            let cmd = pipeline.cmd("EVALSHA").arg(&self.check).arg(LOCKS.len());
            cmd.arg(&LOCKS.map(|lock| format!("{twin}:{{{lock}}}")));
            cmd.arg(self.now).arg(SILENCE).arg(u8::from(self.all_live));
        }
        let mut kept = Vec::new();
        for answer in self.send(pipeline).await {
            let mut parts: Vec<Value> = Vec::from_redis_value(answer).expect("a list");
            let wrong: Vec<String> = Vec::from_redis_value(parts.remove(0)).expect("texts");
            assert!(wrong.is_empty(), "{wrong:?} after {after}");
            let locks = parts.into_iter().map(Kept::from_redis_value);
            kept.push(locks.collect::<Result<Vec<_>, _>>().expect("what is kept"));
        }
        assert_eq!(kept[0], kept[1], "they differ after {after}");
        kept.swap_remove(0)
    }
}

impl Step {
    fn alone(self, channel: &str) -> Call {
        let name = token(self.number);
        let (script, args) = match self.what {
            What::Acquire("") => ("acquire", vec![name, TTL.into(), channel.into()]),
            What::Acquire(mark) => (
                "acquire",
                vec![name, TTL.into(), channel.into(), format!("x{mark}")],
            ),
            What::Return(mark, position) => (
                "acquire",
                vec![
                    name,
                    TTL.into(),
                    channel.into(),
                    format!("x{mark}"),
                    position.to_string(),
                ],
            ),
            What::Renew => ("renew", vec![name, TTL.into(), "x".into()]),
            What::Release => ("release", vec![name]),
            What::Leave => {
                let member = format!("x:{TTL}:{channel}\n{name}");
                ("release", vec![name, member])
            }
        };
        let lock = self.lock;
        Call { script, lock, args }
    }
}

async fn load(connection: &mut MultiplexedConnection, text: &str) -> String {
    let mut cmd = redis::cmd("SCRIPT");
    cmd.arg("LOAD").arg(text);
    cmd.query_async(connection).await.expect("a script")
}

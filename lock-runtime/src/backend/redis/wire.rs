//! The calls to the server and its replies, as values: what they look like on
//! the wire is said here and in the scripts, and nowhere else.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, FromRedisValue as _, ServerError, Value};

use super::scripts::{self, Script};
use crate::backend::Cause;
use crate::clock::Moment;
use crate::error::{Holder, LockError};
use crate::key::LockKey;
use crate::request::Terms;

/// Names one acquisition on the server: 128 bits from the operating system, so
/// that nobody else ever has the same. Each stands in a queue at most once.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Token(u128);

impl Token {
    /// A fresh token.
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(u128::from_be_bytes(bytes)))
    }

    fn parse(text: &str) -> Option<Self> {
        let number = u128::from_str_radix(text, 16).ok()?;
        (text.len() == 32).then_some(Self(number))
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An acquisition under the token that it has at the moment.
#[derive(Clone, Debug)]
pub(super) struct Ticket {
    pub(super) terms: Arc<Terms>,
    pub(super) token: Token,
}

/// One call of a script.
#[derive(Debug)]
pub(super) enum Call {
    Acquire {
        ticket: Ticket,
        /// The place in line of an earlier token of the same waiter.
        place: Option<u64>,
    },
    /// All tickets are of one key.
    Ask(Vec<Ticket>),
    Leave(Ticket),
    Renew(Ticket),
    Release(Ticket),
    /// Releases a grant that nobody here knows, by the owner key's full name.
    Disown {
        owner: Box<str>,
        token: Token,
    },
}

/// A call and the moment before it was sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) call: Call,
    pub(super) at: Moment,
}

/// What a script answered.
#[derive(Debug)]
pub(super) enum Reply {
    Granted {
        fence: u64,
    },
    Waiting {
        place: u64,
        line: Line,
    },
    Busy {
        line: Line,
    },
    Gone,
    Asked {
        line: Line,
        standings: Vec<Standing>,
    },
    Ours(bool),
}

/// What stands at the head of a line.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) owner: Box<str>,
    /// `None` where the owner has no ttl.
    pub(super) left: Option<Duration>,
}

impl Line {
    pub(super) fn holder(&self) -> Box<Holder> {
        Box::new(Holder {
            id: self.owner.clone(),
            remaining: self.left,
        })
    }
}

/// Where one asked token stands.
#[derive(Debug)]
pub(super) enum Standing {
    Granted { fence: u64 },
    Waiting,
    Gone,
}

/// Why there is no reply.
#[derive(Clone, Debug)]
pub(super) enum Trouble {
    /// The server did not know the script and has done nothing.
    NotRun,
    /// It cannot serve at the moment.
    NotNow(Cause),
    /// It will not, as long as nobody changes something.
    Never(Cause),
    /// The connection ended before the answer: it may have been done or not.
    Unknown(Cause),
}

/// The names of the keys and the channel, as the scripts expect them.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) prefix: Box<str>,
    /// Where this connection hears of its grants.
    pub(super) channel: Box<str>,
}

impl Names {
    /// The name of a connection is random, never made of host and process: a
    /// clone of a machine would share it.
    pub(super) fn new(prefix: &str) -> Result<Self, getrandom::Error> {
        Ok(Self {
            prefix: prefix.into(),
            channel: format!("{prefix}:grant:{}", Token::new()?).into(),
        })
    }

    pub(super) fn fence(&self) -> String {
        format!("{}:fence", self.prefix)
    }

    fn owner(&self, key: &LockKey) -> String {
        format!("{}:{{{key}}}", self.prefix)
    }

    fn member(&self, ticket: &Ticket) -> String {
        let ttl = ticket.terms.ttl.as_millis();
        format!("{}:x:{ttl}:{}", ticket.token, self.channel)
    }

    fn script(&self, script: &Script, owner: &str, by_text: bool) -> Cmd {
        let mut cmd = script.call(by_text);
        cmd.arg(4)
            .arg(owner)
            .arg(format!("{owner}:q"))
            .arg(format!("{owner}:s"))
            .arg(self.fence());
        cmd
    }

    fn release(&self, owner: &str, token: Token, member: &str, by_text: bool) -> Cmd {
        let mut cmd = self.script(&scripts::RELEASE, owner, by_text);
        cmd.arg(token.to_string()).arg(member);
        cmd
    }
}

impl Call {
    /// The script that it calls.
    pub(super) fn script(&self) -> &'static Script {
        match self {
            Self::Acquire { .. } => &scripts::ACQUIRE,
            Self::Ask(_) => &scripts::ASK,
            Self::Leave(_) | Self::Release(_) | Self::Disown { .. } => &scripts::RELEASE,
            Self::Renew(_) => &scripts::RENEW,
        }
    }

    /// How long its answer may take.
    pub(super) fn timeout(&self) -> Duration {
        match self {
            Self::Acquire { ticket, .. }
            | Self::Leave(ticket)
            | Self::Renew(ticket)
            | Self::Release(ticket) => ticket.terms.call_timeout(),
            Self::Ask(tickets) => tickets
                .iter()
                .map(|ticket| ticket.terms.call_timeout())
                .min()
                .unwrap_or(Duration::from_secs(1)),
            Self::Disown { .. } => Duration::from_secs(1),
        }
    }

    /// The command, with the script's text instead of its hash where `by_text`.
    pub(super) fn encode(&self, names: &Names, by_text: bool) -> Cmd {
        match self {
            Self::Acquire { ticket, place } => {
                let terms = &ticket.terms;
                let mut cmd = names.script(&scripts::ACQUIRE, &names.owner(&terms.key), by_text);
                cmd.arg(ticket.token.to_string())
                    .arg(millis(terms.ttl))
                    .arg(&*names.channel)
                    .arg(u8::from(!terms.wait.is_try()))
                    .arg(place.map_or_else(String::new, |place| place.to_string()));
                cmd
            }
            Self::Ask(tickets) => {
                let owner = names.owner(&tickets[0].terms.key);
                let mut cmd = names.script(&scripts::ASK, &owner, by_text);
                cmd.arg(&*names.channel);
                for ticket in tickets {
                    cmd.arg(names.member(ticket));
                }
                cmd
            }
            Self::Leave(ticket) => {
                let owner = names.owner(&ticket.terms.key);
                names.release(&owner, ticket.token, &names.member(ticket), by_text)
            }
            Self::Release(ticket) => {
                let owner = names.owner(&ticket.terms.key);
                names.release(&owner, ticket.token, "", by_text)
            }
            Self::Disown { owner, token } => names.release(owner, *token, "", by_text),
            Self::Renew(ticket) => {
                let mut cmd = scripts::RENEW.call(by_text);
                cmd.arg(1)
                    .arg(names.owner(&ticket.terms.key))
                    .arg(ticket.token.to_string())
                    .arg(millis(ticket.terms.ttl));
                cmd
            }
        }
    }

    /// Reads the answer. `None` where it is not one to this call: the replies
    /// of the connection have shifted, and none of them can be trusted.
    pub(super) fn decode(&self, value: Value) -> Option<Result<Reply, Trouble>> {
        if let Value::ServerError(error) = value {
            return Some(Err(Trouble::from_server(&error)));
        }
        let Value::Array(items) = value else {
            return None;
        };
        match self {
            Self::Acquire { ticket, .. } => acquired(&items, ticket.token),
            Self::Ask(tickets) => asked(&items, tickets),
            Self::Leave(ticket) | Self::Renew(ticket) | Self::Release(ticket) => {
                ours(&items, ticket.token)
            }
            Self::Disown { token, .. } => ours(&items, *token),
        }
        .map(Ok)
    }
}

fn acquired(items: &[Value], expected: Token) -> Option<Reply> {
    let (token, status, rest) = standing(items)?;
    if token != expected {
        return None;
    }
    match (status.as_str(), rest) {
        ("granted", [fence]) => Some(Reply::Granted {
            fence: number(fence)?,
        }),
        ("waiting", [place, left, owner]) => Some(Reply::Waiting {
            place: number(place)?,
            line: line(left, owner)?,
        }),
        ("busy", [_, left, owner]) => Some(Reply::Busy {
            line: line(left, owner)?,
        }),
        ("gone", []) => Some(Reply::Gone),
        _ => None,
    }
}

fn asked(items: &[Value], tickets: &[Ticket]) -> Option<Reply> {
    let [left, owner, answers @ ..] = items else {
        return None;
    };
    if answers.len() != tickets.len() {
        return None;
    }
    let mut standings = Vec::with_capacity(answers.len());
    for (answer, ticket) in answers.iter().zip(tickets) {
        let Value::Array(answer) = answer else {
            return None;
        };
        let (token, status, rest) = standing(answer)?;
        if token != ticket.token {
            return None;
        }
        standings.push(match (status.as_str(), rest) {
            ("granted", [fence]) => Standing::Granted {
                fence: number(fence)?,
            },
            ("waiting", []) => Standing::Waiting,
            ("gone", []) => Standing::Gone,
            _ => return None,
        });
    }
    let line = line(left, owner)?;
    Some(Reply::Asked { line, standings })
}

fn ours(items: &[Value], expected: Token) -> Option<Reply> {
    let [token, ours] = items else { return None };
    let token = Token::parse(&text(token)?)?;
    (token == expected).then_some(Reply::Ours(number(ours)? == 1))
}

fn standing(items: &[Value]) -> Option<(Token, String, &[Value])> {
    let [token, status, rest @ ..] = items else {
        return None;
    };
    Some((Token::parse(&text(token)?)?, text(status)?, rest))
}

fn line(left: &Value, owner: &Value) -> Option<Line> {
    let Value::Int(left) = left else { return None };
    Some(Line {
        owner: text(owner)?.into_boxed_str(),
        left: u64::try_from(*left).ok().map(Duration::from_millis),
    })
}

/// The value of a foreign client need not be text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

fn number(value: &Value) -> Option<u64> {
    u64::from_redis_value_ref(value).ok()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A grant, as the dispatch script publishes it.
pub(super) fn decode_grant(message: &[u8]) -> Option<(Token, u64, &str)> {
    let message = std::str::from_utf8(message).ok()?;
    let (token, rest) = message.split_once(':')?;
    let (fence, owner) = rest.split_once(':')?;
    Some((Token::parse(token)?, fence.parse().ok()?, owner))
}

impl Trouble {
    /// Inside a script some errors keep their code and some come as `ERR` with
    /// the code in the text, depending on the server's version.
    fn from_server(error: &ServerError) -> Self {
        const NEVER: [&str; 5] = ["NOAUTH", "WRONGPASS", "NOPERM", "WRONGTYPE", "can't run"];
        if error.code() == "NOSCRIPT" {
            return Self::NotRun;
        }
        let text = format!("{} {}", error.code(), error.details().unwrap_or_default());
        let never = NEVER.iter().any(|code| text.contains(code))
            || text.contains("The user executing the script can't");
        let cause: Cause = Arc::new(ServerSaid(text));
        if never {
            Self::Never(cause)
        } else {
            Self::NotNow(cause)
        }
    }

    /// What went wrong while connecting.
    pub(super) fn from_connecting(error: redis::RedisError) -> Self {
        use redis::{ErrorKind, ServerErrorKind};

        let code = error.code().unwrap_or_default();
        let never = matches!(code, "NOAUTH" | "WRONGPASS" | "NOPERM")
            || matches!(
                error.kind(),
                ErrorKind::AuthenticationFailed
                    | ErrorKind::InvalidClientConfig
                    | ErrorKind::RESP3NotSupported
                    | ErrorKind::Server(ServerErrorKind::NoPerm)
            );
        let cause: Cause = Arc::new(error);
        if never {
            Self::Never(cause)
        } else {
            Self::NotNow(cause)
        }
    }

    pub(super) fn cause(&self) -> Cause {
        match self {
            Self::NotRun => Arc::new(ServerSaid("NOSCRIPT".into())),
            Self::NotNow(cause) | Self::Never(cause) | Self::Unknown(cause) => Arc::clone(cause),
        }
    }
}

impl From<Trouble> for LockError {
    fn from(trouble: Trouble) -> Self {
        Self::unavailable(trouble.cause())
    }
}

/// An error reply, or what happened to the connection, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct ServerSaid(pub(super) String);

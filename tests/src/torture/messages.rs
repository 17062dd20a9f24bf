//! Connections that break right before a message, right after it, or lose its answer; each store's messages by name.

use std::{sync::LazyLock, time::Duration};

use tokio::time::sleep;

use super::{Servers, crew::Crew, history::monotonic};
use crate::{Verdict, lua};

/// How long the message is waited for.
const TIME_LIMIT: Duration = Duration::from_secs(1);

/// A sort of message.
#[derive(Clone, Debug)]
pub(super) struct Message {
    name: &'static str,
    /// Whether the server says it, and not the client.
    from_server: bool,
    mark: Mark,
}

/// By what a message is known.
#[derive(Clone, Debug)]
enum Mark {
    /// These bytes are in it.
    Bytes(Vec<u8>),
    /// A request, or an answer, of ZooKeeper with this number.
    ZooKeeper(i32),
    /// A message of gRPC that begins so, numbers of bytes left out.
    Grpc(&'static [u8]),
    /// It has more bytes, together with others that come at once.
    Longer(usize),
}

impl Message {
    /// Any that is longer than that.
    pub(super) fn longer(from_server: bool, most: usize) -> Self {
        Self {
            name: "large message",
            from_server,
            mark: Mark::Longer(most),
        }
    }

    /// Whether it is among these bytes, which begin with a whole message.
    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        match &self.mark {
            Mark::Bytes(mark) => bytes.windows(mark.len()).any(|it| it == mark),
            Mark::ZooKeeper(number) => packets(bytes).any(|it| it == Some(*number)),
            Mark::Longer(most) => bytes.len() > *most,
            Mark::Grpc(tags) => grpc(bytes).any(|it| begins_with(it, tags)),
        }
    }
}

/// The messages of a store at which connections break.
fn messages(servers: Servers) -> &'static [Message] {
    static REDIS: LazyLock<Vec<Message>> = LazyLock::new(redis);
    static SETNX: LazyLock<Vec<Message>> = LazyLock::new(setnx);
    static ZOOKEEPER: LazyLock<Vec<Message>> = LazyLock::new(zookeeper);
    static ETCD: LazyLock<Vec<Message>> = LazyLock::new(etcd);
    static POSTGRES: LazyLock<Vec<Message>> = LazyLock::new(postgres);
    static MYSQL: LazyLock<Vec<Message>> = LazyLock::new(mysql);
    match servers {
        Servers::Setnx => &SETNX,
        Servers::ZooKeeper => &ZOOKEEPER,
        Servers::Etcd => &ETCD,
        Servers::Postgres => &POSTGRES,
        Servers::Mysql => &MYSQL,
        _ => &REDIS,
    }
}

fn redis() -> Vec<Message> {
    let mut messages: Vec<_> = [
        ("call of acquire", lua::ACQUIRE),
        ("call of ask", lua::ASK),
        ("call of release", lua::RELEASE),
        ("call of renew", lua::RENEW),
        ("call of many", lua::MANY),
        ("call of many", lua::MANY_DECLARED),
        ("call of issue", lua::ISSUE),
        ("call of adopt", lua::ADOPT),
    ]
    .map(script)
    .into();
    messages.push(said(true, "pushed grant", b"\r\nmessage\r\n"));
    messages.push(said(false, "subscription", b"SUBSCRIBE\r\n"));
    messages
}

fn setnx() -> Vec<Message> {
    [
        ("call of acquire", lua::SETNX_ACQUIRE),
        ("call of ask", lua::SETNX_ASK),
        ("call of release", lua::SETNX_RELEASE),
        ("call of renew", lua::SETNX_RENEW),
    ]
    .map(script)
    .into()
}

/// Scripts are called by their digests.
fn script((name, text): (&'static str, &str)) -> Message {
    let digest = redis::Script::new(text).get_hash().to_owned();
    said(false, name, digest.as_bytes())
}

fn said(from_server: bool, name: &'static str, bytes: &[u8]) -> Message {
    Message {
        name,
        from_server,
        mark: Mark::Bytes(bytes.to_vec()),
    }
}

fn zookeeper() -> Vec<Message> {
    let asked = [
        ("creation", 15),
        ("creation of a container", 19),
        ("deletion", 2),
        ("read that watches", 4),
        ("list", 12),
        // Heartbeats, and permits that tell the next one of themselves.
        ("write", 5),
        ("sync", 9),
        ("transaction", 14),
        ("watches after a reconnect", 101),
    ];
    let mut messages: Vec<_> = asked
        .map(|(name, number)| Message {
            name,
            from_server: false,
            mark: Mark::ZooKeeper(number),
        })
        .into();
    messages.push(Message {
        name: "event of a watch",
        from_server: true,
        mark: Mark::ZooKeeper(-1),
    });
    messages
}

/// The first tags of messages, which are those of their first fields.
fn etcd() -> Vec<Message> {
    let asked: [(_, &[u8]); 8] = [
        ("entry", &[0x0a, 0x10]),
        ("entry", &[0x0a, 0x1a]),
        ("announcement", &[0x12, 0x12]),
        // It begins with its key, and the key with the prefix `lock`.
        ("deletion", &[0x0a, b'l']),
        // Deletions go first, entries are nested.
        ("calls together", &[0x12, 0x1a]),
        ("calls together", &[0x12, 0x22]),
        ("keep-alive", &[0x08]),
        ("watch", &[0x0a, 0x0a]),
    ];
    let mut messages: Vec<_> = asked
        .map(|(name, tags)| Message {
            name,
            from_server: false,
            mark: Mark::Grpc(tags),
        })
        .into();
    messages.push(said(true, "event of a key", b"lock/torture-"));
    messages
}

/// Statements are prepared under the names of the functions that they call, behind which a zero stands.
fn postgres() -> Vec<Message> {
    let called: [(_, &[u8]); 7] = [
        ("call of acquire", b"\0acquire\0"),
        ("call of ask", b"\0ask\0"),
        ("call of release", b"\0release\0"),
        ("call of renew", b"\0renew\0"),
        ("call of many", b"\0many\0"),
        ("call of issue", b"\0issue\0"),
        ("call of adopt", b"\0adopt\0"),
    ];
    let mut messages: Vec<_> = called.map(|(name, bytes)| said(false, name, bytes)).into();
    messages.push(said(false, "subscription", b"LISTEN "));
    messages.push(said(true, "pushed grant", b"lock_runtime_"));
    messages
}

/// Procedures are called by their names.
fn mysql() -> Vec<Message> {
    let called: [(_, &[u8]); 7] = [
        ("call of acquire", b"CALL lock_runtime_acquire("),
        ("call of ask", b"CALL lock_runtime_ask("),
        ("call of release", b"CALL lock_runtime_release("),
        ("call of renew", b"CALL lock_runtime_renew("),
        ("call of many", b"CALL lock_runtime_many("),
        ("call of issue", b"CALL lock_runtime_issue("),
        ("call of adopt", b"CALL lock_runtime_adopt("),
    ];
    called.map(|(name, bytes)| said(false, name, bytes)).into()
}

/// The number of each packet of ZooKeeper: what a request asks for, or which request an answer is about.
fn packets(mut bytes: &[u8]) -> impl Iterator<Item = Option<i32>> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (packet, rest) = rest.split_at_checked(length)?;
        bytes = rest;
        let number = |at: usize| {
            let number = packet.get(at..at + 4)?.try_into().ok()?;
            Some(i32::from_be_bytes(number))
        };
        // An event has no request, and says so in its place.
        Some(number(0).filter(|it| *it == -1).or_else(|| number(4)))
    })
}

/// The messages of gRPC in frames of HTTP/2 that begin here.
fn grpc(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    const DATA: u8 = 0;
    std::iter::from_fn(move || {
        loop {
            let (head, rest) = bytes.split_first_chunk::<9>()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let (frame, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            bytes = rest;
            if head[3] == DATA && frame.len() > 5 {
                return Some(&frame[5..]);
            }
        }
    })
}

/// Whether the first fields, each in the one before it, have these tags.
fn begins_with(mut message: &[u8], tags: &[u8]) -> bool {
    for tag in tags {
        let Some((first, rest)) = message.split_first() else {
            return false;
        };
        if first != tag {
            return false;
        }
        let length = rest.iter().take_while(|it| **it >= 0x80).count() + 1;
        message = rest.get(length..).unwrap_or_default();
    }
    true
}

/// Breaks connections of some processes at one message.
pub(super) async fn strike(crew: &mut Crew) -> &'static str {
    let messages = messages(crew.servers);
    let message = &messages[fastrand::usize(..messages.len())];
    let way = &crew.ways[fastrand::usize(..crew.ways.len())];
    let verdicts = [
        Verdict::BreakBefore,
        Verdict::BreakAfter,
        Verdict::Unanswered,
    ];
    let verdict = verdicts[fastrand::usize(..verdicts.len())];
    let trap = way.trap(message.from_server);
    trap.arm(message.clone(), verdict);
    let end = monotonic() + TIME_LIMIT;
    let before = trap.sprung();
    while trap.sprung() == before && monotonic() < end {
        sleep(Duration::from_millis(5)).await;
    }
    if trap.disarm() {
        message.name
    } else {
        "message that nobody sent"
    }
}

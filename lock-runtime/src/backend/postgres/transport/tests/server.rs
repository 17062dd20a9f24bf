//! A server that logs everybody in, knows what a link asks first, and answers the rest as it
//! is told.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::{Buf as _, BufMut as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The answer to a call.
#[derive(Clone, Debug)]
pub(super) enum Says {
    Row(Vec<&'static str>),
    /// A row that answers another call.
    Foreign(Vec<&'static str>),
    Error(&'static str),
    /// The same, and the connection ends.
    Fatal(&'static str),
    /// The connection ends without an answer.
    Goodbye,
    /// No answer to this call and all that follow.
    Nothing,
}

/// What a server is.
pub(super) struct Own {
    /// The message with which it answers to a login.
    pub(super) login: &'static [u8],
    /// The number of the process that it names at the login; that of the connection is 1.
    pub(super) process: i32,
    pub(super) who: &'static str,
    /// Its answer to the questions about its settings.
    pub(super) facts: [&'static str; 9],
    /// Its answer to that about the schema's version.
    pub(super) schema: Says,
    /// The session whose bell cannot be taken.
    pub(super) taken: Option<String>,
}

pub(super) struct Pretender {
    pub(super) address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    own: Own,
    /// The kinds of messages of each call, and its text.
    seen: Vec<String>,
}

impl Pretender {
    pub(super) fn start(says: impl Fn(&str) -> Says + Send + Sync + 'static) -> Self {
        let own = Own {
            login: b"\0\0\0\0",
            process: 1,
            who: "PostgreSQL 15.3",
            facts: [
                "1",
                "f",
                "off",
                "150003",
                "UTF8",
                "read committed",
                "notice",
                "",
                "on",
            ],
            schema: Says::Row(vec!["1"]),
            taken: None,
        };
        let seen = Vec::new();
        let shared = Arc::new(Mutex::new(Shared { own, seen }));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let this = Self {
            address: listener.local_addr().expect("an address"),
            shared: Arc::clone(&shared),
        };
        let listener = TcpListener::from_std(listener).expect("a listener");
        let says = Arc::new(says);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (shared, says) = (Arc::clone(&shared), Arc::clone(&says));
                tokio::spawn(async move { Peer::new(stream, shared).serve(&*says).await });
            }
        });
        this
    }

    pub(super) fn own(&self, change: impl FnOnce(&mut Own)) {
        change(&mut self.shared.lock().expect("no panic").own);
    }

    /// What has been asked since the last time.
    pub(super) fn take_seen(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().expect("no panic").seen)
    }
}

struct Peer {
    stream: TcpStream,
    read: BytesMut,
    shared: Arc<Mutex<Shared>>,
    /// The text of each prepared statement.
    prepared: HashMap<String, String>,
}

impl Peer {
    fn new(stream: TcpStream, shared: Arc<Mutex<Shared>>) -> Self {
        Self {
            stream,
            read: BytesMut::new(),
            shared,
            prepared: HashMap::new(),
        }
    }

    async fn serve(mut self, says: &(dyn Fn(&str) -> Says + Sync)) -> io::Result<()> {
        let mut greeting = BytesMut::new();
        {
            let own = &self.shared.lock().expect("no panic").own;
            message(&mut greeting, b'R', own.login);
            let key = [own.process.to_be_bytes(), [0; 4]].concat();
            message(&mut greeting, b'K', &key);
            message(&mut greeting, b'Z', b"I");
        }
        self.next(0).await?;
        self.stream.write_all(&greeting).await?;
        let mut is_silent = false;
        loop {
            let mut call = Call::default();
            while !matches!(call.kinds.chars().last(), Some('S' | 'Q')) {
                let (kind, body) = self.next(1).await?;
                call.take(kind, &body, &mut self.prepared);
            }
            let answer = self.decide(&call, says);
            is_silent |= matches!(answer, Some(Says::Nothing));
            if is_silent {
                continue;
            }
            let mut out = BytesMut::new();
            if !call.write(answer.as_ref(), &mut out) {
                return self.stream.write_all(&out).await;
            }
            self.stream.write_all(&out).await?;
        }
    }

    /// `None` if a statement is not prepared.
    fn decide(&mut self, call: &Call, says: &(dyn Fn(&str) -> Says + Sync)) -> Option<Says> {
        let mut shared = self.shared.lock().expect("no panic");
        let (text, mark) = call.text.as_deref().map(unmarked).unzip();
        let seen = format!("{} {}", call.kinds, text.unwrap_or("-"));
        shared.seen.push(seen);
        let text = text?;
        let own = &shared.own;
        let is_taken = own
            .taken
            .as_deref()
            .is_some_and(|it| call.args.contains(it));
        let answer = match text {
            "SELECT pg_catalog.version()" => Says::Row(vec![own.who]),
            "SELECT \"lock_runtime\".version()" => own.schema.clone(),
            _ if text.contains("pg_backend_pid(), ") => Says::Row(own.facts.to_vec()),
            _ if text.contains("set_config") => Says::Row(vec!["", "", ""]),
            _ if text.contains("pg_terminate_backend") => Says::Row(vec!["t"]),
            _ if text.contains("advisory_lock(") && is_taken => Says::Row(vec!["f"]),
            _ if text.contains("advisory_lock(") => Says::Row(vec!["t"]),
            "FORGET" => {
                self.prepared.clear();
                Says::Row(vec!["1"])
            }
            _ => says(text),
        };
        Some(match (answer, mark.flatten()) {
            (Says::Row(mut row), Some(mark)) => {
                row.push(String::from(mark).leak());
                Says::Row(row)
            }
            (answer, _) => answer,
        })
    }

    /// The next message; that which begins a connection has no kind.
    async fn next(&mut self, kind: usize) -> io::Result<(char, BytesMut)> {
        loop {
            let length = self.read.get(kind..kind + 4);
            let length = length.map(|it| u32::from_be_bytes(it.try_into().expect("four")) as usize);
            if let Some(length) = length.filter(|it| self.read.len() >= kind + it) {
                let mut message = self.read.split_to(kind + length);
                let tag = if kind == 0 {
                    ' '
                } else {
                    char::from(message[0])
                };
                message.advance(kind + 4);
                return Ok((tag, message));
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// The messages up to a `Sync`, or a simple query.
#[derive(Default)]
struct Call {
    kinds: String,
    text: Option<String>,
    args: String,
}

impl Call {
    fn take(&mut self, kind: char, body: &[u8], prepared: &mut HashMap<String, String>) {
        self.kinds.push(kind);
        let mut words = body.split(|it| *it == 0).map(String::from_utf8_lossy);
        let mut word = || words.next().unwrap_or_default().into_owned();
        match kind {
            'P' => {
                let name = word();
                prepared.insert(name, word());
            }
            'B' => {
                word();
                self.text = prepared.get(&word()).cloned();
                self.args = String::from_utf8_lossy(body).into_owned();
            }
            'Q' => self.text = Some(word()),
            _ => {}
        }
    }

    /// Writes an answer; `false` if the connection ends with it.
    fn write(&self, says: Option<&Says>, out: &mut BytesMut) -> bool {
        if self.kinds.contains('P') {
            message(out, b'1', b"");
        }
        match says {
            None => error(out, "ERROR", "26000"),
            Some(Says::Row(values) | Says::Foreign(values)) => {
                let mut row = BytesMut::new();
                row.put_u16(u16::try_from(values.len()).expect("short"));
                for value in values {
                    row.put_u32(u32::try_from(value.len()).expect("short"));
                    row.put_slice(value.as_bytes());
                }
                message(out, b'D', &row);
                message(out, b'C', b"SELECT 1\0");
            }
            Some(Says::Error(code)) => error(out, "ERROR", code),
            Some(Says::Fatal(code)) => error(out, "FATAL", code),
            Some(Says::Goodbye | Says::Nothing) => {}
        }
        match says {
            Some(Says::Fatal(_) | Says::Goodbye) => return false,
            _ => message(out, b'Z', b"I"),
        }
        true
    }
}

/// A statement, and the mark that each row of its answer is to end with.
fn unmarked(text: &str) -> (&str, Option<&str>) {
    let marked = text.strip_prefix("SELECT answer.*, '");
    let parts = marked.and_then(|it| it.strip_suffix(") AS answer")?.split_once("' FROM ("));
    parts.map_or((text, None), |(mark, inner)| (inner, Some(mark)))
}

fn error(out: &mut BytesMut, severity: &str, code: &str) {
    let body = format!("V{severity}\0C{code}\0Mrefused\0\0");
    message(out, b'E', body.as_bytes());
}

fn message(out: &mut BytesMut, kind: u8, body: &[u8]) {
    out.put_u8(kind);
    out.put_u32(4 + u32::try_from(body.len()).expect("short"));
    out.put_slice(body);
}

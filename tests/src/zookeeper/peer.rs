//! A client that looks at the nodes of a ZooKeeper server, and changes them as a person would.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::{TIME_LIMIT, within};

const NO_NODE: i32 = -101;

const CREATE: i32 = 1;
const DELETE: i32 = 2;
const GET_DATA: i32 = 4;
const GET_CHILDREN: i32 = 8;
const CLOSE: i32 = -11;

/// A connection with a session of its own.
#[derive(Debug)]
pub struct ZooKeeperPeer {
    stream: TcpStream,
}

impl ZooKeeperPeer {
    /// Opens a session.
    pub async fn connect(addr: SocketAddr) -> Self {
        let connected = within(TIME_LIMIT, Self::try_connect(addr)).await;
        connected.unwrap_or_else(|error| panic!("cannot look at the server: {error}"))
    }

    pub(super) async fn try_connect(addr: SocketAddr) -> io::Result<Self> {
        timeout(Duration::from_secs(2), Self::open(addr)).await?
    }

    async fn open(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        let mut this = Self { stream };
        let (no_version, none_seen, timeout, no_session) = (0_i32, 0_i64, 20_000_i32, 0_i64);
        let mut hello = Vec::new();
        hello.extend(no_version.to_be_bytes());
        hello.extend(none_seen.to_be_bytes());
        hello.extend(timeout.to_be_bytes());
        hello.extend(no_session.to_be_bytes());
        hello.extend(bytes(&[0; 16]));
        hello.push(0);
        this.send(&hello).await?;
        this.receive().await?;
        Ok(this)
    }

    /// The names of a node's children, sorted; none where there is no node.
    pub async fn children(&mut self, path: &str) -> Vec<String> {
        let body = [bytes(path.as_bytes()), vec![0]].concat();
        let Some(answer) = self.ask(GET_CHILDREN, &body).await else {
            return Vec::new();
        };
        let (count, mut rest) = number(&answer);
        let mut names = Vec::new();
        for _ in 0..count {
            let (length, after) = number(rest);
            let (name, after) = after.split_at(length);
            names.push(String::from_utf8(name.to_vec()).expect("a name in UTF-8"));
            rest = after;
        }
        names.sort();
        names
    }

    /// What a node contains, if it is there.
    pub async fn data(&mut self, path: &str) -> Option<String> {
        let body = [bytes(path.as_bytes()), vec![0]].concat();
        let answer = self.ask(GET_DATA, &body).await?;
        let (length, rest) = number(&answer);
        Some(String::from_utf8_lossy(&rest[..length]).into_owned())
    }

    /// Creates a node that stays.
    pub async fn create(&mut self, path: &str, data: &str) {
        self.create_for_all(path, data, 31).await;
    }

    /// Creates one that nobody may look at, nor create anything below it.
    pub async fn create_closed(&mut self, path: &str) {
        self.create_for_all(path, "", 0).await;
    }

    async fn create_for_all(&mut self, path: &str, data: &str, rights: i32) {
        let (one, persistent) = (1_i32, 0_i32);
        let body = [
            bytes(path.as_bytes()),
            bytes(data.as_bytes()),
            one.to_be_bytes().into(),
            rights.to_be_bytes().into(),
            bytes(b"world"),
            bytes(b"anyone"),
            persistent.to_be_bytes().into(),
        ];
        self.ask(CREATE, &body.concat())
            .await
            .expect("what stands above it is there");
    }

    /// Deletes a node; `false` if it was not there.
    pub async fn delete(&mut self, path: &str) -> bool {
        let any_version = -1_i32;
        let body = [bytes(path.as_bytes()), any_version.to_be_bytes().into()].concat();
        self.ask(DELETE, &body).await.is_some()
    }

    /// Ends the session, and what it has created for its own time.
    pub async fn close(mut self) {
        self.ask(CLOSE, &[]).await;
    }

    /// The answer to a request; `None` if there is no such node.
    async fn ask(&mut self, code: i32, body: &[u8]) -> Option<Vec<u8>> {
        let asking = async {
            let head = [1_i32.to_be_bytes(), code.to_be_bytes()].concat();
            self.send(&[&head, body].concat()).await?;
            self.receive().await
        };
        let answer = within(TIME_LIMIT, asking).await.expect("an answer");
        let (head, rest) = answer.split_at(16);
        let error = i32::from_be_bytes(head[12..].try_into().expect("four bytes"));
        assert!(matches!(error, 0 | NO_NODE), "error {error}");
        (error == 0).then(|| rest.to_vec())
    }

    async fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.stream.write_all(&bytes(packet)).await
    }

    async fn receive(&mut self) -> io::Result<Vec<u8>> {
        let length = self.stream.read_u32().await?;
        let mut packet = vec![0; length as usize];
        self.stream.read_exact(&mut packet).await?;
        Ok(packet)
    }
}

/// Writes bytes after their number.
fn bytes(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("a short text");
    [&length.to_be_bytes(), bytes].concat()
}

/// Reads a number, which stands at the beginning.
fn number(bytes: &[u8]) -> (usize, &[u8]) {
    let (number, rest) = bytes.split_first_chunk().expect("a number");
    let number = u32::from_be_bytes(*number);
    (usize::try_from(number).expect("a small number"), rest)
}

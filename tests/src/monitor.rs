//! Every command that a server carries out, as its clients sent it.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use crate::{
    RedisServer, TIME_LIMIT,
    fixtures::{unique, within},
};

/// Hears of every command from [`RedisServer::monitor`] on.
#[derive(Debug)]
pub struct Monitor {
    lines: Lines<BufReader<OwnedReadHalf>>,
    // Closed, it would end the connection.
    _commands: OwnedWriteHalf,
}

impl RedisServer {
    /// Listens to all commands of all clients; the server must ask for no password.
    pub async fn monitor(&self) -> Monitor {
        Monitor::of(self.addr())
            .await
            .unwrap_or_else(|error| panic!("cannot inspect the server: {error}"))
    }
}

impl Monitor {
    /// Listens to the server at this address.
    pub(crate) async fn of(server: SocketAddr) -> io::Result<Self> {
        let (from, mut to) = TcpStream::connect(server).await?.into_split();
        to.write_all(b"MONITOR\r\n").await?;
        let mut lines = BufReader::new(from).lines();
        match lines.next_line().await?.as_deref() {
            Some("+OK") => Ok(Self {
                lines,
                _commands: to,
            }),
            other => Err(io::Error::other(format!("an answer to MONITOR: {other:?}"))),
        }
    }

    /// The next line that it says, `None` when the connection has ended.
    pub(crate) async fn line(&mut self) -> io::Result<Option<String>> {
        self.lines.next_line().await
    }

    /// The commands since the last call of this, in their order: their names in lower case,
    /// then their arguments. Those that scripts ran are left out.
    pub async fn commands(&mut self, server: &RedisServer) -> Vec<Vec<String>> {
        let end = unique("end");
        server.cmd(&["ECHO", &end]).await;
        let mut commands = Vec::new();
        loop {
            let line = within(TIME_LIMIT, self.lines.next_line()).await;
            let line = line.expect("UTF-8").expect("the server is there");
            let (by_script, words) = command(&line).expect("a client and a command");
            if words.last() == Some(&end) {
                return commands;
            }
            if !by_script {
                commands.push(words);
            }
        }
    }
}

/// What a line says: whether a script ran the command, its name in lower case, and its arguments.
pub(crate) fn command(line: &str) -> Option<(bool, Vec<String>)> {
    let (from, words) = line.split_once("] ")?;
    let words = words.strip_prefix('"')?.strip_suffix('"')?;
    let words = words.split(r#"" ""#).map(|word| word.replace(r"\n", "\n"));
    let mut words: Vec<_> = words.collect();
    words[0].make_ascii_lowercase();
    Some((from.ends_with(" lua"), words))
}

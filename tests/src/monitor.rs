//! Every command that a server carries out, as its clients sent it.

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use crate::{
    PATIENCE, RedisServer,
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
        let stream = TcpStream::connect(self.addr())
            .await
            .unwrap_or_else(|error| panic!("cannot inspect the server: {error}"));
        let (from, mut to) = stream.into_split();
        to.write_all(b"MONITOR\r\n").await.expect("a connection");
        let mut lines = BufReader::new(from).lines();
        let answer = within(PATIENCE, lines.next_line()).await;
        assert_eq!(answer.expect("an answer").as_deref(), Some("+OK"));
        Monitor {
            lines,
            _commands: to,
        }
    }
}

impl Monitor {
    /// The commands since the last call of this, in their order: their names in lower case,
    /// then their arguments. Those that scripts ran are left out.
    pub async fn commands(&mut self, server: &RedisServer) -> Vec<Vec<String>> {
        let end = unique("end");
        server.cmd(&["ECHO", &end]).await;
        let mut commands = Vec::new();
        loop {
            let line = within(PATIENCE, self.lines.next_line()).await;
            let line = line.expect("UTF-8").expect("the server is there");
            let (from, words) = line.split_once("] ").expect("a client and a command");
            let words = words.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
            let mut words: Vec<_> = words
                .expect("quoted words")
                .split(r#"" ""#)
                .map(|word| word.replace(r"\n", "\n"))
                .collect();
            if words.last() == Some(&end) {
                return commands;
            }
            words[0].make_ascii_lowercase();
            if !from.ends_with(" lua") {
                commands.push(words);
            }
        }
    }
}

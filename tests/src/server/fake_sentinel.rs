//! A sentinel that says what a test wants, as late as the test wants.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{self, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf},
    sync::{mpsc, watch},
    task::JoinHandle,
    time::sleep,
};

use crate::net::{listener, runtime};

/// What it says of every service.
#[derive(Clone, Copy, Debug)]
struct Said {
    epoch: u64,
    master: SocketAddr,
    /// How long it takes to answer.
    delay: Duration,
}

/// A sentinel that knows one master, whoever that is; dropping it ends it.
#[derive(Debug)]
pub struct FakeSentinel {
    addr: SocketAddr,
    says: watch::Sender<Said>,
    accepting: JoinHandle<()>,
}

impl FakeSentinel {
    /// One that names this master since that failover.
    pub fn start(epoch: u64, master: SocketAddr) -> Self {
        let (listener, addr) = listener();
        let delay = Duration::ZERO;
        let said = Said {
            epoch,
            master,
            delay,
        };
        let (says, heard) = watch::channel(said);
        let accepting = runtime().spawn(async move {
            let listener = TcpListener::from_std(listener).expect("a listening socket");
            while let Ok((client, _)) = listener.accept().await {
                runtime().spawn(serve(client, heard.clone()));
            }
        });
        Self {
            addr,
            says,
            accepting,
        }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Announces another master, as after a failover, and answers this much later from now on.
    pub fn announce(&self, epoch: u64, master: SocketAddr, delay: Duration) {
        self.says.send_replace(Said {
            epoch,
            master,
            delay,
        });
    }
}

impl Drop for FakeSentinel {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Answers one client until it, or the sentinel, has gone.
async fn serve(client: TcpStream, mut heard: watch::Receiver<Said>) -> io::Result<()> {
    client.set_nodelay(true)?;
    let (read, mut write) = client.into_split();
    let mut commands = commands(read);
    let mut listens = false;
    loop {
        let words = tokio::select! {
            words = commands.recv() => match words {
                Some(words) => words,
                None => return Ok(()),
            },
            changed = heard.changed() => {
                if changed.is_err() {
                    return Ok(());
                }
                if listens {
                    let event = push(&["message", "+switch-master", "another one"]);
                    write.write_all(event.as_bytes()).await?;
                }
                continue;
            }
        };
        let said = *heard.borrow();
        sleep(said.delay).await;
        listens |= words[0] == "SUBSCRIBE";
        write.write_all(answer(&words, said).as_bytes()).await?;
    }
}

/// What the client sends, command by command.
fn commands(read: OwnedReadHalf) -> mpsc::UnboundedReceiver<Vec<String>> {
    let (sender, commands) = mpsc::unbounded_channel();
    runtime().spawn(async move {
        let mut read = BufReader::new(read);
        while let Ok(words) = command(&mut read).await {
            if sender.send(words).is_err() {
                return;
            }
        }
    });
    commands
}

/// The words of the next command.
async fn command(read: &mut BufReader<OwnedReadHalf>) -> io::Result<Vec<String>> {
    let count = number(read).await?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut word = vec![0; number(read).await? + 2];
        read.read_exact(&mut word).await?;
        word.truncate(word.len() - 2);
        words.push(String::from_utf8_lossy(&word).to_uppercase());
    }
    Ok(words)
}

/// The number behind the mark at the start of a line.
async fn number(read: &mut BufReader<OwnedReadHalf>) -> io::Result<usize> {
    let mut line = String::new();
    read.read_line(&mut line).await?;
    let number = line.trim_end().get(1..).and_then(|it| it.parse().ok());
    number.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn answer(words: &[String], said: Said) -> String {
    let Said { epoch, master, .. } = said;
    let (host, port) = (master.ip().to_string(), master.port().to_string());
    match words[0].as_str() {
        "HELLO" => "%1\r\n$5\r\nproto\r\n:3\r\n".to_owned(),
        "SUBSCRIBE" => ">3\r\n".to_owned() + &bulks(&["subscribe", "+switch-master"]) + ":1\r\n",
        "SENTINEL" if words[1] == "MASTER" => {
            let epoch = epoch.to_string();
            "%1\r\n".to_owned() + &bulks(&["config-epoch", &epoch])
        }
        "SENTINEL" => "*2\r\n".to_owned() + &bulks(&[&host, &port]),
        _ => "+OK\r\n".to_owned(),
    }
}

fn push(words: &[&str]) -> String {
    format!(">{}\r\n", words.len()) + &bulks(words)
}

fn bulks(words: &[&str]) -> String {
    let bulks = words.iter().map(|it| format!("${}\r\n{it}\r\n", it.len()));
    bulks.collect()
}

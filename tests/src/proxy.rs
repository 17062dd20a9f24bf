//! A faulty network between a client and a server: delays, black holes and cut connections, at will.

use std::{
    fmt, io, mem,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep, sleep_until},
};

use crate::{
    fixtures::{LOOK_EVERY, TIME_LIMIT, poll_once, within},
    net::{listener, runtime},
};

/// The most bytes that travel as one.
const CHUNK: usize = 16 * 1024;

/// A loopback port whose connections lead to a server, through two [`Direction`]s.
///
/// It runs apart from the test's runtime, which may be blocked.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    target: SocketAddr,
    /// How long a server that refuses is asked again.
    retry_for: Duration,
    requests: Arc<Direction>,
    replies: Arc<Direction>,
    connections: Arc<Mutex<JoinSet<io::Result<()>>>>,
    accepting: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A proxy that forwards everything to `target`.
    pub fn start(target: SocketAddr) -> Self {
        Self::start_early(target, Duration::ZERO)
    }

    /// The same for a target that may listen a little later: until then, nothing passes and nobody is refused.
    pub fn start_early(target: SocketAddr, retry_for: Duration) -> Self {
        let (listener, addr) = listener();
        let mut proxy = Self {
            addr,
            target,
            retry_for,
            requests: Arc::default(),
            replies: Arc::default(),
            connections: Arc::default(),
            accepting: None,
        };
        proxy.accept_from(listener);
        proxy
    }

    /// The URL by which a client reaches the server through the proxy.
    pub fn url(&self) -> String {
        format!("redis://{}", self.addr)
    }

    /// Where the proxy listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The bytes from the clients to the server.
    pub fn requests(&self) -> &Direction {
        &self.requests
    }

    /// The bytes from the server to the clients.
    pub fn replies(&self) -> &Direction {
        &self.replies
    }

    /// The bytes that carry this.
    pub fn way(&self, lost: Lost) -> &Direction {
        match lost {
            Lost::Request => &self.requests,
            Lost::Reply => &self.replies,
        }
    }

    /// Begins what asks the server, and closes all connections when the request, or the reply, is on its way.
    ///
    /// What it is given may have asked nothing before it is polled: a request that was sent
    /// earlier passes before it can be held.
    pub async fn lose(&self, lost: Lost, asks: &mut (impl Future + Unpin)) {
        let way = self.way(lost);
        way.hold();
        assert!(poll_once(asks).await.is_pending());
        within(TIME_LIMIT, way.held()).await;
        self.cut().await;
        way.pass();
    }

    /// Closes all connections and loses what they held; new ones are welcome.
    pub async fn cut(&self) {
        let mut connections = mem::take(&mut *lock(&self.connections));
        connections.shutdown().await;
    }

    /// Refuses new connections, as a host without the server would; those that are open stay.
    pub async fn refuse(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            // An error only says that it was aborted; the listener is closed by now.
            let _ = accepting.await;
        }
    }

    /// Accepts connections again after [`Proxy::refuse`].
    pub fn admit(&mut self) {
        if self.accepting.is_none() {
            let listener = std::net::TcpListener::bind(self.addr)
                .unwrap_or_else(|error| panic!("{} is no longer free: {error}", self.addr));
            listener.set_nonblocking(true).expect("a socket");
            self.accept_from(listener);
        }
    }

    /// Leads new connections to another server, as a balancer does after a failover; those that are open stay.
    pub async fn lead_to(&mut self, target: SocketAddr) {
        self.refuse().await;
        self.target = target;
        self.admit();
    }

    fn accept_from(&mut self, listener: std::net::TcpListener) {
        let (target, retry_for) = (self.target, self.retry_for);
        let requests = Arc::clone(&self.requests);
        let replies = Arc::clone(&self.replies);
        let connections = Arc::clone(&self.connections);
        self.accepting = Some(runtime().spawn(async move {
            let listener = TcpListener::from_std(listener).expect("a listening socket");
            while let Ok((client, _)) = listener.accept().await {
                let (requests, replies) = (Arc::clone(&requests), Arc::clone(&replies));
                lock(&connections).spawn(async move {
                    let server = reach(target, retry_for).await?;
                    carry(client, server, &requests, &replies).await
                });
            }
        }));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(accepting) = &self.accepting {
            accepting.abort();
        }
        lock(&self.connections).abort_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while holding it")
}

/// Joins a client to the server until both directions have ended or one has failed.
pub(crate) async fn join(
    client: TcpStream,
    target: SocketAddr,
    requests: &Direction,
    replies: &Direction,
) -> io::Result<()> {
    let server = TcpStream::connect(target).await?;
    carry(client, server, requests, replies).await
}

/// Connects to a server, which is asked again if it refuses.
async fn reach(target: SocketAddr, retry_for: Duration) -> io::Result<TcpStream> {
    let until = Instant::now() + retry_for;
    loop {
        match TcpStream::connect(target).await {
            Err(_) if Instant::now() < until => sleep(LOOK_EVERY).await,
            connected => return connected,
        }
    }
}

async fn carry(
    client: TcpStream,
    server: TcpStream,
    requests: &Direction,
    replies: &Direction,
) -> io::Result<()> {
    server.set_nodelay(true)?;
    client.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let unanswered = AtomicBool::new(false);
    tokio::try_join!(
        requests.carry(from_client, to_server, &unanswered, false),
        replies.carry(from_server, to_client, &unanswered, true),
    )?;
    Ok(())
}

/// What of an exchange is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The server does nothing.
    Request,
    /// The client does not hear what the server has done.
    Reply,
}

/// What becomes of bytes that [`Direction::inspect`] has looked at, and of their connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They go on.
    Pass,
    /// They are lost, and the connection breaks.
    BreakBefore,
    /// They go on, and the connection breaks behind them.
    BreakAfter,
    /// Requests go on; from then on the connection stays open and its client hears nothing any more.
    Unanswered,
}

type Look = dyn Fn(&mut Vec<u8>) -> Verdict + Send + Sync;

/// Looks at what goes one way.
#[derive(Default)]
struct Inspector(Mutex<Option<Arc<Look>>>);

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inspector")
    }
}

impl Inspector {
    fn judge(&self, bytes: &mut Vec<u8>) -> Verdict {
        let look = lock(&self.0).clone();
        look.map_or(Verdict::Pass, |look| look(bytes))
    }
}

/// What happens to the bytes that go one way, over all connections of a proxy.
#[derive(Debug)]
pub struct Direction {
    mode: watch::Sender<Mode>,
    held: watch::Sender<bool>,
    inspector: Inspector,
    /// The most bytes that are delivered at once.
    piece: AtomicUsize,
    bytes: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
enum Mode {
    Pass,
    Delay(Duration),
    Hold,
}

impl Default for Direction {
    fn default() -> Self {
        Self {
            mode: watch::Sender::new(Mode::Pass),
            held: watch::Sender::new(false),
            inspector: Inspector::default(),
            piece: AtomicUsize::new(CHUNK),
            bytes: AtomicU64::new(0),
        }
    }
}

impl Direction {
    /// Lets everything through at once, also what was held or delayed so far.
    pub fn pass(&self) {
        self.mode.send_replace(Mode::Pass);
    }

    /// Lets everything through this long after it arrived; the rate stays the same.
    pub fn delay(&self, delay: Duration) {
        self.mode.send_replace(Mode::Delay(delay));
    }

    /// Takes everything and delivers nothing, not even the end of a connection, until another verdict is set.
    pub fn hold(&self) {
        self.held.send_replace(false);
        self.mode.send_replace(Mode::Hold);
    }

    /// Waits until something arrived that the last [`Direction::hold`] keeps back.
    pub async fn held(&self) {
        let mut held = self.held.subscribe();
        held.wait_for(|held| *held)
            .await
            .expect("the sender is ours");
    }

    /// Has `look` see, and change, whatever arrives here before it is delivered, in place of what looked before. It sees
    /// what was read at once: usually whole messages, one or several.
    pub fn inspect(&self, look: impl Fn(&mut Vec<u8>) -> Verdict + Send + Sync + 'static) {
        *lock(&self.inspector.0) = Some(Arc::new(look));
    }

    /// Looks at nothing any more.
    pub fn ignore(&self) {
        *lock(&self.inspector.0) = None;
    }

    /// Delivers so many bytes at once at the most, `None` for as many as there are.
    pub fn piecemeal(&self, most: Option<usize>) {
        self.piece.store(most.unwrap_or(CHUNK), Ordering::Relaxed);
    }

    /// How many bytes were let through.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Carries one connection's bytes, and its end, as the mode of the moment says.
    async fn carry(
        &self,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        unanswered: &AtomicBool,
        to_client: bool,
    ) -> io::Result<()> {
        // Arrivals are taken off the wire at once, so that a delay does not slow the sender down.
        let (arrivals, mut queue) = mpsc::unbounded_channel();
        let read = async move {
            loop {
                let mut chunk = Vec::with_capacity(CHUNK);
                let end = from.read_buf(&mut chunk).await? == 0;
                // Fails only when the writer failed, and then both are dropped.
                let _ = arrivals.send((Instant::now(), chunk));
                if end {
                    return Ok(());
                }
            }
        };
        let write = async {
            while let Some((arrived, mut chunk)) = queue.recv().await {
                self.admit(arrived).await;
                let verdict = self.inspector.judge(&mut chunk);
                if verdict == Verdict::BreakBefore {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                if verdict == Verdict::Unanswered {
                    unanswered.store(true, Ordering::Relaxed);
                }
                if to_client && unanswered.load(Ordering::Relaxed) {
                    continue;
                }
                self.bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                for piece in chunk.chunks(self.piece.load(Ordering::Relaxed)) {
                    to.write_all(piece).await?;
                }
                if verdict == Verdict::BreakAfter {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
            }
            to.shutdown().await
        };
        tokio::try_join!(read, write)?;
        Ok(())
    }

    /// Waits until what arrived then may go on.
    async fn admit(&self, arrived: Instant) {
        let mut mode = self.mode.subscribe();
        loop {
            let current = *mode.borrow_and_update();
            match current {
                Mode::Pass => return,
                Mode::Delay(delay) => tokio::select! {
                    () = sleep_until(arrived + delay) => return,
                    _ = mode.changed() => {}
                },
                Mode::Hold => {
                    self.held.send_replace(true);
                    let _ = mode.changed().await;
                }
            }
        }
    }
}

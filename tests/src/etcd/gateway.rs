//! A proxy that speaks gRPC before a member: it denies methods, limits streams, loses calls and refuses watches.

use std::{
    collections::HashSet,
    future::pending,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use h2::{
    RecvStream, SendStream,
    client::{self, SendRequest},
    server::{self, SendResponse},
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use prost::bytes::Bytes;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    task::JoinHandle,
};

use crate::net::{listener, runtime};

const WATCH: &str = "/etcdserverpb.Watch/Watch";
const STATUS: &str = "/etcdserverpb.Maintenance/Status";
const TXN: &str = "/etcdserverpb.KV/Txn";
const MEMBERS: &str = "/etcdserverpb.Cluster/MemberList";
/// How much either side may send before it is read.
const WINDOW: u32 = 4 << 20;
/// A message begins with a flag and its length.
const PREFIX: usize = 5;
/// A `WatchRequest` that creates a watch begins with the first field.
const CREATE: u8 = 0x0a;
/// A put that ends with `ignore_lease`, and then what is done otherwise: an entry is written again where it stands.
const REWRITE: &[u8] = &[0x30, 0x01, 0x1a];
/// Created and cancelled at once, with the watch id -1.
const REFUSED_WATCH: &[u8] = &[
    0, 0, 0, 0, 15, 0x10, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0x18, 1, 0x20, 1,
];

/// A loopback port that leads to a member of etcd, call by call.
#[derive(Debug)]
pub struct Gateway {
    addr: SocketAddr,
    faults: Arc<Faults>,
    connections: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

/// What happens to calls.
#[derive(Debug, Default)]
struct Faults {
    /// Whether it answers as a member that does not vote.
    learns: AtomicBool,
    denied: Mutex<HashSet<String>>,
    huge: Mutex<HashSet<String>>,
    members: Mutex<Option<u8>>,
    rewrites: Mutex<Refusals>,
    watches: Mutex<Refusals>,
    lost: Mutex<Option<Vec<u8>>>,
    /// How often connections were retired.
    retired: watch::Sender<usize>,
}

/// How many calls are to be refused, how many were, and by which status.
#[derive(Clone, Copy, Debug, Default)]
struct Refusals {
    left: usize,
    done: usize,
    status: u16,
}

impl Refusals {
    fn take(&mut self) -> Option<u16> {
        self.left = self.left.checked_sub(1)?;
        self.done += 1;
        Some(self.status)
    }
}

impl Gateway {
    /// Leads to `target`, with so many streams at once on each connection.
    pub fn start(target: SocketAddr, streams: u32) -> Self {
        let (listener, addr) = listener();
        let faults = Arc::<Faults>::default();
        let connections = Arc::<AtomicUsize>::default();
        let (shared, count) = (Arc::clone(&faults), Arc::clone(&connections));
        let accepting = runtime().spawn(async move {
            let listener = TcpListener::from_std(listener).expect("a listening socket");
            while let Ok((client, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let faults = Arc::clone(&shared);
                // Its end is the end of a connection.
                runtime().spawn(async move { join(client, target, streams, faults).await });
            }
        });
        Self {
            addr,
            faults,
            connections,
            accepting,
        }
    }

    /// Where the gateway listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A URL that leads through the gateway.
    pub fn url(&self) -> String {
        format!("etcd://{}", self.addr)
    }

    /// How many connections clients have opened.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Denies a method, such as `Maintenance/Status`, as etcd denies what a user has no right to.
    pub fn deny(&self, method: &str) {
        lock(&self.faults.denied).insert(format!("/etcdserverpb.{method}"));
    }

    /// Answers as a member that does not vote, or as one that does.
    pub fn learn(&self, learns: bool) {
        self.faults.learns.store(learns, Ordering::Relaxed);
    }

    /// Answers a method with more than anybody wants to read.
    pub fn swell(&self, method: &str) {
        lock(&self.faults.huge).insert(format!("/etcdserverpb.{method}"));
    }

    /// Says that the cluster has so many members, numbered from 1.
    pub fn claim_members(&self, count: u8) {
        *lock(&self.faults.members) = Some(count);
    }

    /// Lets methods be answered by the member again.
    pub fn pass(&self) {
        lock(&self.faults.denied).clear();
        lock(&self.faults.huge).clear();
        *lock(&self.faults.members) = None;
    }

    /// Answers the next so many rewrites of an entry with a status of gRPC; they do not reach the member.
    pub fn refuse_rewrites(&self, count: usize, status: u16) {
        let left = count;
        let done = 0;
        *lock(&self.faults.rewrites) = Refusals { left, done, status };
    }

    /// How many rewrites were refused.
    pub fn refused_rewrites(&self) -> usize {
        lock(&self.faults.rewrites).done
    }

    /// Refuses the next so many watches with the id -1.
    pub fn refuse_watches(&self, count: usize) {
        lock(&self.faults.watches).left = count;
    }

    /// Loses the next call whose message contains this.
    pub fn lose(&self, text: &str) {
        *lock(&self.faults.lost) = Some(text.into());
    }

    /// Whether it has lost that call.
    pub fn has_lost(&self) -> bool {
        lock(&self.faults.lost).is_none()
    }

    /// Accepts no more calls on the connections that are open, as a member that is about to stop: those in flight go on.
    pub fn retire(&self) {
        self.faults.retired.send_modify(|times| *times += 1);
    }

    /// How many watches were refused.
    pub fn refused_watches(&self) -> usize {
        lock(&self.faults.watches).done
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while holding it")
}

/// Serves one connection until either side has ended.
async fn join(
    client: TcpStream,
    target: SocketAddr,
    streams: u32,
    faults: Arc<Faults>,
) -> Result<(), Error> {
    let member = TcpStream::connect(target).await?;
    client.set_nodelay(true)?;
    member.set_nodelay(true)?;
    let (member, connection) = client::Builder::new()
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .handshake::<_, Bytes>(member)
        .await?;
    let mut clients = server::Builder::new()
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_concurrent_streams(streams)
        .handshake::<_, Bytes>(client)
        .await?;
    let mut retired = faults.retired.subscribe();
    let serve = async {
        loop {
            let accepted = tokio::select! {
                accepted = clients.accept() => accepted,
                Ok(()) = retired.changed() => {
                    clients.graceful_shutdown();
                    continue;
                }
            };
            let Some(accepted) = accepted else {
                return Ok(());
            };
            let (request, respond) = accepted?;
            let (member, faults) = (member.clone(), Arc::clone(&faults));
            // An error is one of this call alone.
            tokio::spawn(async move { serve(request, respond, member, &faults).await });
        }
    };
    tokio::select! {
        ended = connection => ended.map_err(Error::from),
        ended = serve => ended,
    }
}

async fn serve(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    member: SendRequest<Bytes>,
    faults: &Faults,
) -> Result<(), Error> {
    let path = request.uri().path().to_owned();
    if faults.learns.load(Ordering::Relaxed) && path != STATUS {
        return refuse(&mut respond, 9, "etcdserver: rpc not supported for learner");
    }
    if path == WATCH {
        return serve_watches(request, respond, member, faults).await;
    }
    let (head, mut body) = request.into_parts();
    let mut message = Vec::new();
    while let Some(data) = next(&mut body).await {
        message.extend_from_slice(&data?);
    }
    let is_lost = |text: &mut Vec<u8>| message.windows(text.len()).any(|it| it == *text);
    if lock(&faults.lost).take_if(is_lost).is_some() {
        return pending().await;
    }
    if lock(&faults.denied).contains(&path) {
        return refuse(&mut respond, 7, "etcdserver: permission denied");
    }
    if path == TXN && message.windows(REWRITE.len()).any(|it| it == REWRITE) {
        let refused = lock(&faults.rewrites).take();
        if let Some(status) = refused {
            return refuse(&mut respond, status, "etcdserver: not now");
        }
    }
    if lock(&faults.huge).contains(&path) {
        return swell(&mut respond).await;
    }
    let members = *lock(&faults.members);
    if let Some(count) = members.filter(|_| path == MEMBERS) {
        return list(&mut respond, count);
    }
    let mut member = member.ready().await?;
    let (response, mut sending) = member.send_request(Request::from_parts(head, ()), false)?;
    sending.send_data(message.into(), true)?;
    let (head, body) = response.await?.into_parts();
    let ends = body.is_end_stream();
    let mut out = respond.send_response(Response::from_parts(head, ()), ends)?;
    if ends {
        return Ok(());
    }
    carry(body, &mut out).await
}

/// Carries an answer and its trailers.
async fn carry(mut body: RecvStream, out: &mut SendStream<Bytes>) -> Result<(), Error> {
    while let Some(data) = next(&mut body).await {
        out.send_data(data?, false)?;
    }
    let trailers = body.trailers().await?;
    out.send_trailers(trailers.unwrap_or_default())?;
    Ok(())
}

/// Carries watches, and refuses some of them.
async fn serve_watches(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    member: SendRequest<Bytes>,
    faults: &Faults,
) -> Result<(), Error> {
    let (head, mut body) = request.into_parts();
    let mut member = member.ready().await?;
    let (response, mut sending) = member.send_request(Request::from_parts(head, ()), false)?;
    let mut out = respond.send_response(grpc(Response::builder()), false)?;
    let (answers, mut answered) = mpsc::unbounded_channel();
    let refused = answers.clone();
    let requests = async move {
        let mut read = Vec::new();
        while let Some(data) = next(&mut body).await {
            read.extend_from_slice(&data?);
            while let Some(frame) = take_frame(&mut read) {
                let creates = frame.get(PREFIX) == Some(&CREATE);
                if creates && lock(&faults.watches).take().is_some() {
                    // It fails when the answers are no longer carried.
                    let _ = refused.send(Bytes::from_static(REFUSED_WATCH));
                } else {
                    sending.send_data(frame.into(), false)?;
                }
            }
        }
        Ok::<_, Error>(())
    };
    let events = async move {
        let mut body = response.await?.into_body();
        while let Some(data) = next(&mut body).await {
            let _ = answers.send(data?);
        }
        Ok::<_, Error>(())
    };
    let write = async move {
        while let Some(data) = answered.recv().await {
            out.send_data(data, false)?;
        }
        Ok::<_, Error>(())
    };
    tokio::try_join!(requests, events, write)?;
    Ok(())
}

/// The first message, if it is complete.
fn take_frame(read: &mut Vec<u8>) -> Option<Vec<u8>> {
    let length = read.get(1..PREFIX)?.try_into().ok()?;
    let end = PREFIX + usize::try_from(u32::from_be_bytes(length)).ok()?;
    (read.len() >= end).then(|| read.drain(..end).collect())
}

/// The next data of a message, for which the sender gets room again.
async fn next(body: &mut RecvStream) -> Option<Result<Bytes, h2::Error>> {
    let data = body.data().await?;
    if let Ok(data) = &data {
        let _ = body.flow_control().release_capacity(data.len());
    }
    Some(data)
}

fn refuse(respond: &mut SendResponse<Bytes>, status: u16, message: &str) -> Result<(), Error> {
    let response = Response::builder()
        .header("grpc-status", status)
        .header("grpc-message", message);
    respond.send_response(grpc(response), true)?;
    Ok(())
}

/// A `MemberListResponse` of so many members, of whom nothing is said but their numbers.
fn list(respond: &mut SendResponse<Bytes>, count: u8) -> Result<(), Error> {
    let mut out = respond.send_response(grpc(Response::builder()), false)?;
    let members: Vec<_> = (1..=count).flat_map(|id| [0x12, 2, 0x08, id]).collect();
    let mut message = vec![0, 0, 0, 0, 4 * count];
    message.extend(members);
    out.send_data(message.into(), false)?;
    out.send_trailers(done())?;
    Ok(())
}

/// One message of a gigabyte, as far as anybody reads.
async fn swell(respond: &mut SendResponse<Bytes>) -> Result<(), Error> {
    let mut out = respond.send_response(grpc(Response::builder()), false)?;
    let mut data = vec![0; 1 << 16];
    data[1..PREFIX].copy_from_slice(&(1_u32 << 30).to_be_bytes());
    for _ in 0..1 << 14 {
        out.reserve_capacity(data.len());
        while out.capacity() < data.len() {
            let more = std::future::poll_fn(|cx| out.poll_capacity(cx)).await;
            more.ok_or(Error::Closed)??;
        }
        out.send_data(data.clone().into(), false)?;
        data.fill(0);
    }
    out.send_trailers(done())?;
    Ok(())
}

/// The trailers of a call that has succeeded.
fn done() -> HeaderMap {
    let name = HeaderName::from_static("grpc-status");
    HeaderMap::from_iter([(name, HeaderValue::from_static("0"))])
}

fn grpc(response: http::response::Builder) -> Response<()> {
    let response = response.header("content-type", "application/grpc");
    response.body(()).expect("a response")
}

/// Why a call is not carried on.
#[derive(Debug)]
#[expect(dead_code, reason = "it is shown, if at all, by a debugger")]
enum Error {
    Io(io::Error),
    Http(h2::Error),
    Closed,
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<h2::Error> for Error {
    fn from(error: h2::Error) -> Self {
        Self::Http(error)
    }
}

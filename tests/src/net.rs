//! Where the support's own work runs, and the ports it takes.

use std::{
    hash::{BuildHasher, RandomState},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{LazyLock, Mutex, PoisonError},
};

use tokio::runtime::{Builder, Runtime};

/// Below the range from which the system numbers outgoing connections: there, a client that knocks at a server that
/// is down could take the server's port, or even connect to itself.
const PORTS: std::ops::Range<u16> = 10_000..30_000;

/// So many ports at a time belong to one test process.
const BLOCK: u16 = 250;

/// The runtime of proxies and child processes.
///
/// It is not the test's own, so that a test may block or end its runtime. Its one thread ends with the process, which
/// child processes depend on: the signal that ends them comes when the thread that started them is gone.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("test-support")
            .enable_all()
            .build()
            .expect("a runtime for the test support")
    });
    &RUNTIME
}

/// A loopback port that nobody listens on just now. No other test process is given it, so a killed server can start
/// again on its port. Programs that are not tests may still take it before the caller binds.
pub(crate) fn free_port() -> u16 {
    bind().1.port()
}

/// A listener on a free port of loopback, for the support's runtime.
pub(crate) fn listener() -> (TcpListener, SocketAddr) {
    let (listener, addr) = bind();
    listener.set_nonblocking(true).expect("a socket");
    (listener, addr)
}

fn bind() -> (TcpListener, SocketAddr) {
    static OURS: Mutex<Ports> = Mutex::new(Ports {
        blocks: Vec::new(),
        next: 0,
    });
    let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let addr = (Ipv4Addr::LOCALHOST, ours.next()).into();
        if let Ok(listener) = TcpListener::bind(addr) {
            return (listener, addr);
        }
    }
}

/// The ports of this process. A process owns a block while it listens on the block's first port.
struct Ports {
    blocks: Vec<(u16, TcpListener)>,
    next: usize,
}

impl Ports {
    /// Gives each port once, from one block after another; again from the first only when no block is free.
    fn next(&mut self) -> u16 {
        let size = usize::from(BLOCK - 1);
        if self.next == self.blocks.len() * size {
            self.blocks.extend(free_block());
        }
        if self.next == self.blocks.len() * size {
            assert!(
                self.next > 0,
                "all of {PORTS:?} belongs to other test processes"
            );
            self.next = 0;
        }
        let (first, _) = &self.blocks[self.next / size];
        let within = u16::try_from(self.next % size).expect("less than a block");
        self.next += 1;
        first + 1 + within
    }
}

/// A block that no process owns, with the listener that owns it. The search starts at random, to find one soon.
fn free_block() -> Option<(u16, TcpListener)> {
    let blocks = usize::from((PORTS.end - PORTS.start) / BLOCK);
    let begin = usize::try_from(RandomState::new().hash_one(()) >> 32).expect("32 bits");
    (PORTS
        .step_by(BLOCK.into())
        .cycle()
        .skip(begin % blocks)
        .take(blocks))
    .find_map(|first| Some((first, TcpListener::bind((Ipv4Addr::LOCALHOST, first)).ok()?)))
}

//! Where the support's own work runs, and the ports it takes.

use std::{
    hash::{BuildHasher, RandomState},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::LazyLock,
};

use tokio::runtime::{Builder, Runtime};

/// Below the range from which the system numbers outgoing connections: there, a client that knocks at a server that
/// is down could take the server's port, or even connect to itself.
const PORTS: std::ops::Range<u16> = 10_000..30_000;

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

/// A loopback port that nobody listens on just now; whoever asked may still find it taken when it binds.
pub(crate) fn free_port() -> u16 {
    loop {
        let random = RandomState::new().hash_one(()) % u64::from(PORTS.end - PORTS.start);
        let port = PORTS.start + u16::try_from(random).expect("less than a range of ports");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// A listener on a free port of loopback, for the support's runtime.
pub(crate) fn listener() -> (TcpListener, SocketAddr) {
    loop {
        let addr = (Ipv4Addr::LOCALHOST, free_port()).into();
        if let Ok(listener) = TcpListener::bind(addr) {
            listener.set_nonblocking(true).expect("a socket");
            return (listener, addr);
        }
    }
}

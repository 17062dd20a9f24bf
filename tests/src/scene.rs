//! A server whose requests and answers are lost on the way to one of two managers.

use std::net::SocketAddr;

use lock_runtime::{LockConfig, LockManager};

use crate::{Lost, Proxy, TIME_LIMIT, connect, poll_once, within};

/// A server that one manager reaches through a proxy, and another one directly.
#[derive(Debug)]
pub struct Scene<S> {
    /// The server, which ends with the scene.
    pub server: S,
    /// The way of the first manager to the server.
    pub proxy: Proxy,
    /// The manager behind the proxy.
    pub ours: LockManager,
    /// The manager that reaches the server directly.
    pub others: LockManager,
}

impl<S> Scene<S> {
    /// Connects both managers; `url` names the server by an address.
    pub async fn new(server: S, addr: SocketAddr, url: impl Fn(&S, SocketAddr) -> String) -> Self {
        let proxy = Proxy::start(addr);
        let config = LockConfig::new(url(&server, proxy.addr())).expect("a URL");
        let config = config
            .connect_timeout(TIME_LIMIT)
            .unavailable_wait(TIME_LIMIT);
        Self {
            ours: connect(config).await,
            others: connect(url(&server, addr)).await,
            server,
            proxy,
        }
    }

    /// Begins what asks the server, and loses the request or the reply; what is sent again is held back.
    pub async fn lose_for_good(&self, lost: Lost, asks: &mut (impl Future + Unpin)) {
        let way = self.proxy.way(lost);
        way.hold();
        assert!(poll_once(asks).await.is_pending());
        within(TIME_LIMIT, way.held()).await;
        self.proxy.requests().hold();
        self.proxy.cut().await;
        self.proxy.replies().pass();
    }
}

/// Makes tests of a store from functions of the module `under_faults` beside the present one. Each test runs twice, with
/// a lost request and with a lost reply, on a scene of its own that the expression makes, if the store can be had.
#[macro_export]
macro_rules! tests_under_faults {
    ($scene:expr, $($test:ident),* $(,)?) => {$(
        #[tokio::test]
        async fn $test() {
            for lost in [$crate::Lost::Request, $crate::Lost::Reply] {
                if let Some(scene) = $scene.await {
                    super::under_faults::$test(&scene, lost).await;
                }
            }
        }
    )*};
}

//! A web service whose handlers run under locks.
//!
//! Look at `order`, a handler with an attribute, and at the answer for each `LockError`: `Retry-After` says when trying
//! again makes sense. `/ready` asks the lock server, so that a load balancer sends nothing to a machine that cannot lock;
//! `/metrics` is for Prometheus, with the buckets that `docs/dashboard.json` reads. On stderr, each lock is logged as the
//! two spans of its acquisition. At the end, on Ctrl-C or the SIGTERM that Kubernetes and systemd send, orders that have
//! begun are finished, and their locks are released.
//!
//! ```text
//! cargo run -p recipes --example axum_orders
//! LISTEN=127.0.0.1:8080 LOCK_URL=redis://127.0.0.1:6379 cargo run -p recipes --example axum_orders
//! curl -i -X POST http://127.0.0.1:8080/orders/lamp
//! curl http://127.0.0.1:8080/metrics
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, stderr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, serve};
use lock_runtime::{LockError, LockManager, distributed_lock};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tokio::signal::ctrl_c;
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;
use tracing_subscriber::fmt::format::FmtSpan;

struct Shop {
    locks: LockManager,
    /// Stands for a table in a database.
    stock: Mutex<HashMap<&'static str, u32>>,
}

enum Failure {
    SoldOut,
    Lock(LockError),
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let error = match self {
            Self::SoldOut => return (StatusCode::GONE, "sold out\n").into_response(),
            Self::Lock(error) => error,
        };
        let status = match &error {
            LockError::Contended { .. } => StatusCode::CONFLICT,
            LockError::Unavailable { .. } | LockError::ShutDown => StatusCode::SERVICE_UNAVAILABLE,
            LockError::InvalidKey { .. } => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut headers = HeaderMap::new();
        if let Some(time) = error.retry_after() {
            let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, seconds.into());
        }
        // What `Display` says of hosts and processes is for the log.
        (status, headers, format!("{}\n", error.public_message())).into_response()
    }
}

#[distributed_lock(key = "stock:{item}", wait = "2s", manager = shop.locks)]
async fn order(State(shop): State<Arc<Shop>>, Path(item): Path<String>) -> Result<String, Failure> {
    let left = shop.left(&item);
    if left == 0 {
        return Err(Failure::SoldOut);
    }
    sleep(Duration::from_millis(200)).await; // the customer pays
    shop.set(&item, left - 1);
    Ok(format!("sold, {} left\n", left - 1))
}

async fn ready(State(shop): State<Arc<Shop>>) -> (StatusCode, &'static str) {
    let health = shop.locks.health().await;
    if health.grants {
        (StatusCode::OK, "ready\n")
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "no lock can be taken at the moment\n",
        )
    }
}

impl Shop {
    fn left(&self, item: &str) -> u32 {
        let stock = self.stock.lock().unwrap_or_else(PoisonError::into_inner);
        stock.get(item).copied().unwrap_or_default()
    }

    fn set(&self, item: &str, count: u32) {
        let mut stock = self.stock.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = stock.get_mut(item) {
            *left = count;
        }
    }
}

/// Counts and measures from here on; the locks do so if there is a recorder when they connect.
fn record() -> Result<PrometheusHandle, BuildError> {
    let seconds = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0];
    let requests = [0.0, 1.0, 4.0, 16.0, 64.0, 256.0];
    let metrics = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &seconds)?
        .set_buckets_for_metric(Matcher::Suffix("_length".to_owned()), &requests)?
        .install_recorder()?;
    // Samples pile up between scrapes, more so if nobody scrapes.
    let upkeep = metrics.clone();
    tokio::spawn(async move {
        loop {
            sleep(Duration::from_secs(5)).await;
            upkeep.run_upkeep();
        }
    });
    Ok(metrics)
}

/// Returns when the service is asked to stop.
#[cfg(unix)]
async fn asked_to_stop() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = ctrl_c() => interrupted,
        _ = terminate.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn asked_to_stop() -> io::Result<()> {
    ctrl_c().await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt()
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(stderr)
        .init();
    let metrics = record()?;

    let url = std::env::var("LOCK_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = LockManager::connect(url).await?;
    let shop = Arc::new(Shop {
        locks: locks.clone(),
        stock: Mutex::new(HashMap::from([("lamp", 50), ("desk", 1)])),
    });
    let routes = Router::new()
        .route("/orders/{item}", post(order))
        .route("/ready", get(ready))
        .with_state(shop)
        .route("/metrics", get(async move || metrics.render()));

    let address = std::env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:0".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let end = async { drop(asked_to_stop().await) };
    serve(listener, routes).with_graceful_shutdown(end).await?;
    locks.shutdown().await;
    println!("all orders are finished, all locks released");
    Ok(())
}

#[cfg(test)]
mod tests {
    use lock_runtime::testing::Locks;

    use super::*;

    fn shop(locks: &Locks) -> Arc<Shop> {
        Arc::new(Shop {
            locks: locks.manager().clone(),
            stock: Mutex::new(HashMap::from([("lamp", 50), ("desk", 1)])),
        })
    }

    async fn buy(shop: &Arc<Shop>, item: &str) -> Response {
        let (shop, item) = (State(Arc::clone(shop)), Path(item.to_owned()));
        order(shop, item).await.into_response()
    }

    #[tokio::test(start_paused = true)]
    async fn one_desk_is_sold_once() {
        let shop = shop(&Locks::new());
        let (first, second) = tokio::join!(buy(&shop, "desk"), buy(&shop, "desk"));
        assert_eq!(first.status(), StatusCode::OK);
        assert_eq!(second.status(), StatusCode::GONE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_customer_whose_item_is_locked_tries_again_later() {
        let locks = Locks::new();
        let _other = locks.hold("stock:lamp").await.expect("it is free");

        let answer = buy(&shop(&locks), "lamp").await;

        assert_eq!(answer.status(), StatusCode::CONFLICT);
        assert!(answer.headers().contains_key(RETRY_AFTER));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_sold_without_the_lock() {
        let locks = Locks::new();
        let shop = shop(&locks);
        locks.disconnect();

        let answer = buy(&shop, "lamp").await;

        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(shop.left("lamp"), 50);
    }
}

//! A web service whose handlers run under locks.
//!
//! Look at `order`, a handler with an attribute, and at the answer for each `LockError`: `Retry-After` says when trying
//! again makes sense. `/ready` asks the lock server, so that a load balancer sends nothing to a machine that cannot lock.
//! At the end, Ctrl-C, orders that have begun are finished, and their locks are released.
//!
//! ```text
//! cargo run --example axum_orders
//! LOCK_URL=redis://127.0.0.1:6379 cargo run --example axum_orders
//! curl -i -X POST http://127.0.0.1:PORT/orders/lamp
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, serve};
use lock_runtime::{LockError, LockManager, distributed_lock};
use tokio::net::TcpListener;
use tokio::time::sleep;

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
        let status = match error {
            LockError::Contended { .. } => StatusCode::CONFLICT,
            LockError::Unavailable { .. } | LockError::ShutDown => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut response = (status, format!("{error}\n")).into_response();
        if let Some(time) = error.retry_after() {
            let seconds = time.as_secs() + 1;
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
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

async fn ready(State(shop): State<Arc<Shop>>) -> Result<&'static str, Failure> {
    shop.locks.status("ready").await?;
    Ok("ready\n")
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

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("LOCK_URL").unwrap_or_else(|_| "memory:".to_owned());
    let locks = LockManager::connect(url).await?;
    let shop = Arc::new(Shop {
        locks: locks.clone(),
        stock: Mutex::new(HashMap::from([("lamp", 50), ("desk", 1)])),
    });
    let routes = Router::new()
        .route("/orders/{item}", post(order))
        .route("/ready", get(ready))
        .with_state(shop);

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on {}", listener.local_addr()?);
    let end = async { drop(tokio::signal::ctrl_c().await) };
    serve(listener, routes).with_graceful_shutdown(end).await?;
    locks.shutdown().await;
    println!("all orders are finished, all locks released");
    Ok(())
}

//! Other attributes on the same function, above and below.
//!
//! Section: expansion.md#other-attributes

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    debug_handler,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use lock_runtime::{LockError, LockManager, distributed_lock};
use tracing::{
    Event, Metadata, Subscriber,
    span::{Attributes, Id, Record},
    subscriber::set_default,
};
use tracing_attributes::instrument;

use crate::harness::{manager, shape, shape_on};
use crate::shop::{Result, ShopError, pause};

/// How many spans of this file are entered.
static ENTERED: AtomicUsize = AtomicUsize::new(0);

/// Counts them.
struct Spans;

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == module_path!()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {
        ENTERED.fetch_add(1, Ordering::Relaxed);
    }

    fn exit(&self, _: &Id) {
        ENTERED.fetch_sub(1, Ordering::Relaxed);
    }
}

fn traced() -> bool {
    ENTERED.load(Ordering::Relaxed) > 0
}

#[instrument]
#[distributed_lock(key = "traced:{traced()}")]
async fn body_traced(id: u32) -> Result<bool> {
    pause().await;
    Ok(traced())
}

#[distributed_lock(key = "traced:{traced()}")]
#[instrument(err, skip_all, fields(id = id))]
async fn wait_traced(id: u32) -> Result<bool> {
    pause().await;
    Ok(traced())
}

#[test]
fn instrument_in_both_orders() {
    let _subscriber = set_default(Spans);
    let call = body_traced(1);
    assert!(shape("#[instrument] above", "traced:false", call).unwrap());
    let call = wait_traced(1);
    assert!(shape("#[instrument] below", "traced:true", call).unwrap());
}

/// Of the functions that nobody calls with an argument.
static LOCKS: OnceLock<LockManager> = OnceLock::new();

#[distributed_lock(key = "test", manager = LOCKS.get_or_init(manager))]
#[tokio::test]
async fn a_test_of_tokio() -> Result<(), LockError> {
    pause().await;
    println!("shape: #[tokio::test] below");
    Ok(())
}

#[test]
fn a_main_function() {
    #[distributed_lock(key = "main", manager = LOCKS.get_or_init(manager))]
    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<u32> {
        pause().await;
        Ok(1)
    }
    assert_eq!(main().unwrap(), 1);
    println!("shape: #[tokio::main] below");
}

#[derive(Clone)]
struct App {
    locks: Arc<LockManager>,
}

impl IntoResponse for ShopError {
    fn into_response(self) -> Response {
        let status = match self {
            Self::Lock(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::SoldOut => StatusCode::CONFLICT,
            Self::NotANumber => StatusCode::BAD_REQUEST,
        };
        status.into_response()
    }
}

#[debug_handler]
#[distributed_lock(key = "stock:{id}", manager = app.locks)]
async fn handler(State(app): State<App>, Path(id): Path<u32>) -> Result<String> {
    pause().await;
    Ok(format!("{id} {}", Arc::strong_count(&app.locks)))
}

#[distributed_lock(key = "stock:{id}", manager = locks)]
#[debug_handler(state = App)]
async fn handler_inside(
    State(App { locks }): State<App>,
    Path(id): Path<u32>,
) -> Result<impl IntoResponse> {
    pause().await;
    Ok((StatusCode::CREATED, id.to_string()))
}

#[test]
fn axum_in_both_orders() {
    let locks = Arc::new(manager());
    let app = App {
        locks: Arc::clone(&locks),
    };
    let call = handler(State(app.clone()), Path(7));
    let text = shape_on(&locks, "axum's debug_handler above", "stock:7", call);
    assert_eq!(text.unwrap(), "7 3");
    let call = handler_inside(State(app), Path(7));
    let response = shape_on(&locks, "axum's debug_handler below", "stock:7", call);
    assert_eq!(response.into_response().status(), StatusCode::CREATED);
}

/// Above the attribute, `debug_handler` would copy the body to where there is no guard.
#[distributed_lock(key = "stock:{id}", manager = app.locks, guard = lock)]
#[debug_handler]
async fn handler_with_guard(State(app): State<App>, Path(id): Path<u32>) -> Result<String> {
    pause().await;
    let _ = &app;
    Ok(format!("{id} {}", lock.is_held()))
}

/// What the body asks for by a call, it may copy.
#[debug_handler]
#[distributed_lock(key = "stock:{id}", manager = app.locks)]
async fn handler_with_current(State(app): State<App>, Path(id): Path<u32>) -> Result<String> {
    pause().await;
    let _ = &app;
    let is_held = lock_runtime::current().is_some_and(|lock| lock.is_held());
    Ok(format!("{id} {is_held}"))
}

#[test]
fn a_handler_has_its_guard_below_debug_handler_and_current_above() {
    let locks = Arc::new(manager());
    let app = App {
        locks: Arc::clone(&locks),
    };
    let call = handler_with_guard(State(app.clone()), Path(7));
    let text = shape_on(&locks, "debug_handler below, with a guard", "stock:7", call);
    assert_eq!(text.unwrap(), "7 true");
    let call = handler_with_current(State(app), Path(7));
    let text = shape_on(
        &locks,
        "debug_handler above, with `current`",
        "stock:7",
        call,
    );
    assert_eq!(text.unwrap(), "7 true");
}

#[test]
fn axum_takes_it_for_a_handler() {
    let locks = Arc::new(manager());
    let router = axum::Router::new().route("/{id}", axum::routing::post(handler));
    let _: axum::Router = router.with_state(App { locks });
    println!("shape: a route of axum's router");
}

#[utoipa::path(post, path = "/stock/{id}", responses((status = 200, body = String)))]
#[distributed_lock(key = "stock:{id}")]
async fn documented(Path(id): Path<u32>) -> Result<String> {
    pause().await;
    Ok(id.to_string())
}

#[distributed_lock(key = "stock:{id}")]
#[utoipa::path(get, path = "/stock/{id}", responses((status = 200, body = String)))]
async fn documented_inside(Path(id): Path<u32>) -> Result<String> {
    pause().await;
    Ok(id.to_string())
}

#[test]
fn utoipa_in_both_orders() {
    let call = documented(Path(7));
    assert_eq!(shape("utoipa's path above", "stock:7", call).unwrap(), "7");
    let call = documented_inside(Path(7));
    assert_eq!(shape("utoipa's path below", "stock:7", call).unwrap(), "7");
}

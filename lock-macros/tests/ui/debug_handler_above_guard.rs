//! A guard below `debug_handler`, which copies the body to where there is none.
#![allow(dead_code, unused_variables)]

use axum::{debug_handler, extract::Path, http::StatusCode};
use lock_runtime::distributed_lock;

#[debug_handler]
#[distributed_lock(key = "stock:{id}", guard = lock, on_error = |_| StatusCode::CONFLICT)]
async fn buy(Path(id): Path<u32>) -> StatusCode {
    assert!(lock.is_held());
    StatusCode::OK
}

fn main() {}

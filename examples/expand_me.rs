//! The function of the README, to look at its expansion: `make expand`.
use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{item}", ttl = "10s", wait = "5s")]
async fn buy(item: &str, count: u32) -> Result<String, LockError> {
    Ok(format!("{count} x {item}"))
}

fn main() {
    drop(buy("lamp", 2));
}

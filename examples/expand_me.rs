//! The function of the README. Look for acquire, hold and release in what `make expand` shows.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{item}", ttl = "10s", wait = "5s")]
async fn buy(item: &str, count: u8) -> Result<u8, LockError> {
    Ok(count)
}

fn main() {
    drop(buy("lamp", 2));
}

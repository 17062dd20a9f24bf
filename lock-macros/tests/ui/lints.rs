//! Lints see the user's code as if the attribute were not there.
#![deny(unused)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{id}")]
async fn never_called(id: u32, unused_argument: u32) -> Result<u32, LockError> {
    let unused_variable = 1;
    std::fs::read("result");
    Ok(1)
}

#[distributed_lock(key = "stock")]
async fn count() -> Result<u32, LockError> {
    return Ok(1);
    println!("too late");
}

#[must_use = "a reason"]
#[distributed_lock(key = "stock", on_error = |_| 0)]
async fn must_use() -> u32 {
    1
}

#[deprecated = "use another"]
#[distributed_lock(key = "stock", on_error = |_| 0)]
async fn deprecated(mut id: u32) -> u32 {
    1
}

fn main() {
    count();
    let _ = async {
        count().await;
        must_use().await;
        deprecated(1).await;
    };
}

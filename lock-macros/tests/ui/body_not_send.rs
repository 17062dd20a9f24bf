//! A future that is not `Send`.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{id}")]
async fn buy(id: std::rc::Rc<u32>) -> Result<u32, LockError> {
    std::future::ready(()).await;
    Ok(*id)
}

fn spawn() {
    tokio::spawn(buy(std::rc::Rc::new(1)));
}

fn main() {}

//! The name under which a function is seen by others: its module, its type, its own name.

use async_trait::async_trait;
use lock_runtime::{LockManager, distributed_lock};

use crate::harness::{block_on, manager};
use crate::shop::Result;

/// The function that holds the lock, as others see it.
async fn holder(locks: &LockManager) -> Result<String> {
    let status = locks.status("k").await?;
    let function = status.holders[0].function.as_deref();
    Ok(function.unwrap_or_default().to_owned())
}

struct Lamp;
struct Shelf<T>(T);

impl Lamp {
    #[distributed_lock(key = "k", manager = locks)]
    async fn go(&self, locks: &LockManager) -> Result<String> {
        holder(locks).await
    }

    #[distributed_lock(key = "k", manager = locks)]
    async fn associated(locks: &LockManager) -> Result<String> {
        holder(locks).await
    }
}

impl<T: Sync> Shelf<T> {
    #[distributed_lock(key = "k", manager = locks)]
    async fn go(&self, locks: &LockManager) -> Result<String> {
        let _ = &self.0;
        holder(locks).await
    }
}

trait Walks {
    #[distributed_lock(key = "k", manager = locks)]
    async fn walk(&self, locks: &LockManager) -> Result<String> {
        holder(locks).await
    }
}

impl Walks for Lamp {}

impl<T> Walks for Shelf<T> {
    #[distributed_lock(key = "k", manager = locks)]
    async fn walk(&self, locks: &LockManager) -> Result<String> {
        holder(locks).await
    }
}

impl<T, const N: usize> Walks for [T; N] {
    #[distributed_lock(key = "k", manager = locks)]
    async fn walk(&self, locks: &LockManager) -> Result<String> {
        holder(locks).await
    }
}

#[async_trait]
trait Runs {
    async fn run(&self, locks: &LockManager) -> Result<String>;
}

#[async_trait]
impl<T: Sync> Runs for Shelf<T> {
    #[distributed_lock(key = "k", manager = locks)]
    async fn run(&self, locks: &LockManager) -> Result<String> {
        holder(locks).await
    }
}

#[distributed_lock(key = "k", manager = locks)]
async fn free<T: Sync>(_: T, locks: &LockManager) -> Result<String> {
    holder(locks).await
}

#[test]
fn a_method_is_seen_with_its_type() {
    #[distributed_lock(key = "k", manager = locks)]
    async fn inner(locks: &LockManager) -> Result<String> {
        holder(locks).await
    }

    let locks = &manager();
    let shelf = Shelf(1);
    let seen = block_on(async {
        [
            Lamp.go(locks).await,
            shelf.go(locks).await,
            Shelf("other").go(locks).await,
            Lamp::associated(locks).await,
            Lamp.walk(locks).await,
            shelf.walk(locks).await,
            [1, 2].walk(locks).await,
            shelf.run(locks).await,
            free(1, locks).await,
            inner(locks).await,
        ]
        .map(std::result::Result::unwrap)
    });
    let expected = [
        "Lamp::go",
        "Shelf::go",
        "Shelf::go",
        "Lamp::associated",
        "Walks::walk",
        "Shelf::walk",
        // Of a type that has no path, the module is named.
        "walk",
        "Shelf::run",
        "free",
        "a_method_is_seen_with_its_type::inner",
    ];
    let expected = expected.map(|name| format!("shapes::functions::{name}"));
    assert_eq!(seen, expected);
}

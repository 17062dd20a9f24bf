//! What the caller gets when the lock was not taken.

use lock_runtime::{LockError, distributed_lock};

use crate::harness::refused;
use crate::shop::{Result, Shop, ShopError, pause, shop};

#[distributed_lock(key = "converted", wait = "0s")]
async fn converted() -> Result<()> {
    pause().await;
    Ok(())
}

#[test]
fn an_error_that_is_converted() {
    let error = refused("an error through From<LockError>", "converted", converted());
    assert!(matches!(
        error,
        Err(ShopError::Lock(LockError::Contended { .. }))
    ));
}

#[distributed_lock(key = "closure:{name}", wait = "0s", on_error = |error| format!("{name}: {}", error.is_retryable()))]
async fn closure(name: &str) -> String {
    pause().await;
    name.to_owned()
}

#[test]
fn a_closure() {
    let text = refused("on_error as a closure", "closure:a", closure("a"));
    assert_eq!(text, "a: true");
}

#[distributed_lock(key = "typed", wait = "0s", on_error = |error: LockError| -> Option<u32> {
    let key = error.key()?;
    u32::try_from(key.as_str().len()).ok()
})]
async fn typed() -> Option<u32> {
    pause().await;
    None
}

#[test]
fn a_closure_with_types_and_a_block() {
    let length = refused("on_error with types and ? in a block", "typed", typed());
    assert_eq!(length, Some(5));
}

#[distributed_lock(key = "unmoved", wait = "0s", on_error = |error| Err((kept, error)))]
async fn unmoved(moved: String, kept: String) -> Result<String, (String, LockError)> {
    pause().await;
    Ok(moved)
}

#[test]
fn an_argument_that_the_body_does_not_move() {
    let call = unmoved(String::from("a"), String::from("kept"));
    let (kept, _) = refused("on_error with an argument by value", "unmoved", call).unwrap_err();
    assert_eq!(kept, "kept");
}

fn fallback(error: LockError) -> u32 {
    drop(error);
    99
}

#[distributed_lock(key = "path", wait = "0s", on_error = fallback)]
async fn path() -> u32 {
    pause().await;
    1
}

#[test]
fn a_function() {
    assert_eq!(refused("on_error as a path", "path", path()), 99);
}

impl Shop {
    fn closed<T: Default>(_: LockError) -> T {
        T::default()
    }

    #[distributed_lock(key = "generic", wait = "0s", on_error = Self::closed::<String>)]
    async fn name(&self) -> String {
        pause().await;
        self.name.to_owned()
    }

    #[distributed_lock(key = "receiver", wait = "0s", on_error = |_| self.sold)]
    async fn sales(&self) -> u32 {
        pause().await;
        self.sold + 1
    }
}

#[test]
fn a_generic_method() {
    let shop = shop();
    let name = refused("on_error as a generic method", "generic", shop.name());
    assert_eq!(name, "");
}

#[test]
fn a_closure_over_the_receiver() {
    let shop = shop();
    assert_eq!(
        refused("on_error that reads self", "receiver", shop.sales()),
        0
    );
}

#[distributed_lock(key = "variant", wait = "0s", on_error = Err)]
async fn variant() -> std::result::Result<u32, LockError> {
    pause().await;
    Ok(1)
}

#[test]
fn a_constructor() {
    let error = refused("on_error as a constructor", "variant", variant());
    assert!(error.is_err());
}

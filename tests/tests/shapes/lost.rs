//! Bodies that run to their end, whatever becomes of the lock.

use async_trait::async_trait;
use lock_runtime::{LockError, distributed_lock};

use crate::harness::{refused, shape};
use crate::shop::{Item, Result, Shop, ShopError, lamp, pause, shop};

#[distributed_lock(key = "notified:{id}", on_lost = "notify", guard = lock)]
async fn notified(id: u32) -> Result<u32> {
    pause().await;
    if !lock.is_held() {
        return Err(ShopError::SoldOut);
    }
    Ok(id)
}

#[test]
fn a_body_with_its_guard() {
    let call = notified(3);
    assert_eq!(
        shape("on_lost = \"notify\"", "notified:3", call).unwrap(),
        3
    );
}

#[distributed_lock(key = "stopped", on_lost = "cancel")]
async fn stopped() -> Result<u32> {
    pause().await;
    Ok(1)
}

#[test]
fn a_body_that_is_stopped() {
    let call = stopped();
    assert_eq!(shape("on_lost = \"cancel\"", "stopped", call).unwrap(), 1);
}

#[distributed_lock(key = "nothing", on_lost = "notify", on_error = |_| *done = false)]
async fn nothing(done: &mut bool) {
    pause().await;
    *done = true;
}

#[test]
fn a_body_without_a_value() {
    let mut done = false;
    shape("notify: nothing to return", "nothing", nothing(&mut done));
    assert!(done);
}

#[distributed_lock(key = "never", on_lost = "notify", on_error = |error| panic!("{error}"))]
async fn never(started: tokio::sync::oneshot::Sender<()>) -> ! {
    started.send(()).unwrap();
    loop {
        pause().await;
    }
}

#[distributed_lock(key = "outer", on_lost = "notify", on_error = |error| panic!("{error}"))]
async fn never_as_another(started: tokio::sync::oneshot::Sender<()>) -> ! {
    never(started).await
}

#[test]
fn a_body_that_never_returns() {
    let (started, has_started) = tokio::sync::oneshot::channel();
    let call = async {
        tokio::select! {
            never = never_as_another(started) => never,
            started = has_started => started.unwrap(),
        }
    };
    shape("notify: -> !", "outer", call);
}

#[distributed_lock(key = "dyn", on_lost = "notify")]
async fn dynamic(text: &str) -> Result<u32, Box<dyn std::error::Error>> {
    if text.is_empty() {
        return Err("nothing to parse".into());
    }
    pause().await;
    Ok(text.parse()?)
}

#[test]
fn errors_that_are_not_send() {
    let number = shape("notify: Result<_, Box<dyn Error>>", "dyn", dynamic("5"));
    assert_eq!(number.unwrap(), 5);
}

#[distributed_lock(key = "impl", on_lost = "notify", on_error = |_| "locked")]
async fn opaque() -> impl std::fmt::Display {
    pause().await;
    "text"
}

#[test]
fn an_opaque_value() {
    let text = shape("notify: -> impl Trait", "impl", opaque());
    assert_eq!(text.to_string(), "text");
}

#[distributed_lock(
    key = "confirmed",
    on_lost = "notify",
    release = "confirmed",
    renew = false
)]
async fn confirmed() -> Result<u32> {
    pause().await;
    Ok(1)
}

#[test]
fn a_release_that_is_confirmed() {
    let call = confirmed();
    let one = shape("notify: release = \"confirmed\"", "confirmed", call);
    assert_eq!(one.unwrap(), 1);
}

#[async_trait]
trait Till {
    async fn sell(&mut self, item: &Item, pair: (u32, u32)) -> Result<u32>;
}

#[async_trait]
impl Till for Shop {
    #[distributed_lock(key = "sell:{self.name}:{a}", on_lost = "notify", guard = lock)]
    async fn sell(&mut self, item: &Item, (a, b): (u32, u32)) -> Result<u32> {
        pause().await;
        assert!(lock.is_held());
        self.sold += item.id + a + b;
        Ok(self.sold)
    }
}

#[test]
fn a_boxed_method() {
    let (mut shop, item) = (shop(), lamp());
    let call = shop.sell(&item, (1, 2));
    let sold = shape("notify: #[async_trait]", "sell:berlin:1", call);
    assert_eq!(sold.unwrap(), 10);
}

#[distributed_lock(key = "refused", wait = "0s", on_lost = "notify")]
async fn refused_at_once() -> Result<u32, LockError> {
    pause().await;
    Ok(1)
}

#[test]
fn a_lock_that_was_not_taken() {
    let call = refused_at_once();
    let error = refused("notify: an error instead of the body", "refused", call);
    assert!(matches!(error, Err(LockError::Contended { .. })));
}

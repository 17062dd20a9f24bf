//! Methods of traits, native ones and those of `#[async_trait]`.

use async_trait::async_trait;
use lock_runtime::distributed_lock;
use std::rc::Rc;

use crate::harness::{local_shape, shape};
use crate::shop::{Item, Result, Shop, ShopError, lamp, pause, shop};

trait Stock {
    fn place(&self) -> u32;

    #[distributed_lock(key = "default:{self.place()}")]
    async fn count(&self) -> Result<u32> {
        pause().await;
        Ok(self.place())
    }

    async fn take(&mut self, item: &Item) -> Result<u32>;

    fn refill(&self) -> impl Future<Output = Result<u32>> + Send;
}

impl Stock for Shop {
    fn place(&self) -> u32 {
        3
    }

    #[distributed_lock(key = "take:{self.name}:{item.id}")]
    async fn take(&mut self, item: &Item) -> Result<u32> {
        pause().await;
        self.sold += item.id;
        Ok(self.sold)
    }

    #[distributed_lock(key = "refill")]
    async fn refill(&self) -> Result<u32> {
        pause().await;
        Ok(self.sold)
    }
}

#[test]
fn a_default_method() {
    let shop = shop();
    let count = shape(
        "a default method of a trait",
        "default:3",
        Stock::count(&shop),
    );
    assert_eq!(count.unwrap(), 3);
}

#[test]
fn a_method_of_an_implementation() {
    let (mut shop, item) = (shop(), lamp());
    let call = shop.take(&item);
    let sold = shape("a method of an implementation", "take:berlin:7", call);
    assert_eq!(sold.unwrap(), 7);
}

#[test]
fn a_method_that_the_trait_declares_otherwise() {
    let shop = shop();
    let call = shop.refill();
    let sold = shape("async fn for a fn that returns impl Future", "refill", call);
    assert_eq!(sold.unwrap(), 0);
}

#[async_trait]
trait Store: Sync {
    fn place(&self) -> u32;

    #[distributed_lock(key = "default:{self.place()}")]
    async fn count(&self) -> Result<u32> {
        pause().await;
        Ok(self.place())
    }

    async fn sell(&mut self, item: &Item, pair: (u32, String), more: u32, _: u8) -> Result<u32>;

    async fn close(&self);

    async fn open<'a>(&self, name: &'a str) -> Result<Box<dyn std::fmt::Display + 'a>>
    where
        Self: Sized;
}

#[async_trait]
impl Store for Shop {
    fn place(&self) -> u32 {
        4
    }

    #[distributed_lock(key = "sell:{self.name}:{item.id}:{a}:{b}:{more}", guard = lock)]
    async fn sell(
        &mut self,
        item: &Item,
        (a, b): (u32, String),
        mut more: u32,
        _: u8,
    ) -> Result<u32> {
        more += 1;
        pause().await;
        if b.is_empty() || !lock.is_held() {
            return Err(ShopError::SoldOut);
        }
        self.sold += item.id + a + more;
        Ok(self.sold)
    }

    #[distributed_lock(key = "close:{self.name}", on_error = |_| ())]
    async fn close(&self) {
        pause().await;
        assert_eq!(self.sold, 0);
    }

    #[distributed_lock(key = "open:{name}", wait = "forever")]
    async fn open<'a>(&self, name: &'a str) -> Result<Box<dyn std::fmt::Display + 'a>> {
        if name.is_empty() {
            return Ok(Box::new(1));
        }
        pause().await;
        Ok(Box::new(name))
    }
}

#[test]
fn a_boxed_default_method() {
    let shop = shop();
    let count = shape(
        "#[async_trait]: a default method",
        "default:4",
        Store::count(&shop),
    );
    assert_eq!(count.unwrap(), 4);
}

#[test]
fn a_boxed_method() {
    let (mut shop, item) = (shop(), lamp());
    let call = shop.sell(&item, (1, String::from("b")), 4, 0);
    let sold = shape(
        "#[async_trait]: destructured, mut and _",
        "sell:berlin:7:1:b:4",
        call,
    );
    assert_eq!(sold.unwrap(), 13);
}

#[test]
fn a_boxed_method_that_returns_nothing() {
    let shop: Box<dyn Close> = Box::new(shop());
    shape(
        "#[async_trait]: nothing to return",
        "close:berlin",
        shop.close(),
    );
}

/// The part of [`Store`] that is called through a trait object.
#[async_trait]
trait Close: Send + Sync {
    async fn close(&self);
}

#[async_trait]
impl Close for Shop {
    async fn close(&self) {
        Store::close(self).await;
    }
}

#[test]
fn a_boxed_method_with_lifetimes() {
    let (shop, name) = (shop(), String::from("north"));
    let call = shop.open(&name);
    let text = shape(
        "#[async_trait]: lifetimes and a coercion",
        "open:north",
        call,
    );
    assert_eq!(text.unwrap().to_string(), "north");
}

#[async_trait(?Send)]
trait Shelf {
    async fn pile(&self, count: Rc<u32>) -> Result<Rc<u32>>;
}

#[async_trait(?Send)]
impl<T> Shelf for T {
    #[distributed_lock(key = "pile:{count}")]
    async fn pile(&self, count: Rc<u32>) -> Result<Rc<u32>> {
        pause().await;
        Ok(count)
    }
}

#[test]
fn a_boxed_method_that_is_not_send() {
    let call = 1.pile(Rc::new(2));
    let count = local_shape("#[async_trait(?Send)]", "pile:2", call);
    assert_eq!(*count.unwrap(), 2);
}

#[async_trait]
trait Traced {
    async fn trace(&self, id: u32) -> Result<u32>;
}

#[async_trait]
impl Traced for Shop {
    #[tracing_attributes::instrument(skip(self))]
    #[distributed_lock(key = "trace:{id}")]
    async fn trace(&self, id: u32) -> Result<u32> {
        pause().await;
        Ok(id + self.sold)
    }
}

#[test]
fn a_boxed_method_that_is_traced() {
    let shop = shop();
    let call = shop.trace(1);
    assert_eq!(
        shape("#[async_trait] and #[instrument]", "trace:1", call).unwrap(),
        1
    );
}

//! Receivers: every form of `self`.

use std::{pin::Pin, rc::Rc, sync::Arc};

use lock_runtime::distributed_lock;

use crate::harness::{local_shape, shape};
use crate::shop::{Item, Result, Shop, ShopError, lamp, pause, shop};

impl Shop {
    const COUNTER: &str = "counter";

    #[distributed_lock(key = "stock:{item.id}", ttl = "10s", wait = "5s")]
    async fn by_reference(&self, item: &Item) -> Result<String, ShopError> {
        pause().await;
        Ok(format!("{}:{}", self.name, item.id))
    }

    #[distributed_lock(key = "shop:{self.name}")]
    async fn by_mutable_reference(&mut self, count: u32) -> Result<u32> {
        pause().await;
        self.sold += count;
        Ok(self.sold)
    }

    #[distributed_lock(key = "shop:{self.name}")]
    async fn by_value(self) -> Result<Self> {
        pause().await;
        Ok(self)
    }

    #[distributed_lock(key = "shop:{self.name}")]
    async fn by_mutable_value(mut self) -> Result<u32> {
        self.sold += 1;
        pause().await;
        Ok(self.sold)
    }

    #[distributed_lock(key = "shop:{self.name}")]
    async fn pinned(mut self: Pin<&mut Self>) -> Result<u32> {
        pause().await;
        self.sold += 2;
        Ok(self.sold)
    }

    #[distributed_lock(key = "shop:{self.name}")]
    async fn shared(self: Arc<Self>) -> Result<&'static str> {
        pause().await;
        Ok(self.name)
    }

    #[distributed_lock(key = "shop:{self.name}")]
    async fn behind_a_shared(self: &Arc<Self>) -> Result<Arc<Self>> {
        pause().await;
        Ok(Arc::clone(self))
    }

    #[distributed_lock(key = "shop:{self.name}")]
    async fn boxed(self: Box<Self>) -> Result<u32> {
        pause().await;
        Ok(self.sold)
    }

    #[distributed_lock(key = "shop:{self.name}")]
    async fn counted(self: Rc<Self>) -> Result<usize> {
        pause().await;
        Ok(Rc::strong_count(&self))
    }

    #[distributed_lock(key = "{Self::COUNTER}:{counter}")]
    async fn without(counter: u32) -> Result<Self> {
        pause().await;
        let sold = counter;
        Ok(Self { sold, ..shop() })
    }
}

#[test]
fn by_reference() {
    let (shop, item) = (shop(), lamp());
    let sold = shape("&self", "stock:7", shop.by_reference(&item));
    assert_eq!(sold.unwrap(), "berlin:7");
}

#[test]
fn by_mutable_reference() {
    let mut shop = shop();
    let call = shop.by_mutable_reference(3);
    assert_eq!(shape("&mut self", "shop:berlin", call).unwrap(), 3);
    assert_eq!(shop.sold, 3);
}

#[test]
fn by_value() {
    let back = shape("self", "shop:berlin", shop().by_value());
    assert_eq!(back.unwrap().name, "berlin");
}

#[test]
fn by_mutable_value() {
    let sold = shape("mut self", "shop:berlin", shop().by_mutable_value());
    assert_eq!(sold.unwrap(), 1);
}

#[test]
fn pinned() {
    let mut shop = shop();
    let call = Pin::new(&mut shop).pinned();
    let sold = shape("mut self: Pin<&mut Self>", "shop:berlin", call);
    assert_eq!(sold.unwrap(), 2);
}

#[test]
fn shared() {
    let call = Arc::new(shop()).shared();
    let name = shape("self: Arc<Self>", "shop:berlin", call);
    assert_eq!(name.unwrap(), "berlin");
}

#[test]
fn behind_a_shared() {
    let shop = Arc::new(shop());
    let call = shop.behind_a_shared();
    let same = shape("self: &Arc<Self>", "shop:berlin", call);
    assert!(Arc::ptr_eq(&same.unwrap(), &shop));
}

#[test]
fn boxed() {
    let call = Box::new(shop()).boxed();
    assert_eq!(shape("self: Box<Self>", "shop:berlin", call).unwrap(), 0);
}

#[test]
fn counted() {
    let call = Rc::new(shop()).counted();
    let count = local_shape("self: Rc<Self>, which is not Send", "shop:berlin", call);
    assert_eq!(count.unwrap(), 1);
}

#[test]
fn without() {
    let call = Shop::without(5);
    let shop = shape("an associated function", "counter:5", call);
    assert_eq!(shop.unwrap().sold, 5);
}

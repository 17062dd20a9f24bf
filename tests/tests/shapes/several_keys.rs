//! Keys in an array: every shape that one key takes.

use std::{fmt, rc::Rc};

use async_trait::async_trait;
use lock_runtime::{LockError, distributed_lock, key};

use crate::harness::{refused, shape};
use crate::shop::{Item, Result, Shop, ShopError, lamp, pause, shop};

const BANK: &str = "bank:1";

#[distributed_lock(key = ["acct:{from}", "acct:{to}"])]
async fn transfer(from: u32, to: u32) -> Result<u32> {
    pause().await;
    Ok(from + to)
}

#[test]
fn names() {
    let sum = shape("two keys", "acct:1", transfer(1, 2));
    assert_eq!(sum.unwrap(), 3);
}

#[test]
fn keys_that_turn_out_to_be_one() {
    let sum = shape("two keys of the same values", "acct:1", transfer(1, 1));
    assert_eq!(sum.unwrap(), 2);
}

#[distributed_lock(key = ["shelf:{first.id}:{first.tags[0]}", "shelf:{second.id + 1:03}"])]
async fn swap(first: &Item, second: &mut Item) -> Result<()> {
    pause().await;
    second.tags.clone_from(&first.tags);
    Ok(())
}

#[test]
fn fields_and_expressions() {
    let (first, mut second) = (
        lamp(),
        Item {
            id: 8,
            tags: vec![],
        },
    );
    let call = swap(&first, &mut second);
    shape("keys of fields and expressions", "shelf:7:warm", call).unwrap();
    assert_eq!(second.tags, first.tags);
}

#[distributed_lock(key = ["alone"])]
async fn one() -> Result<u32> {
    pause().await;
    Ok(1)
}

#[test]
fn an_array_of_one() {
    assert_eq!(shape("an array of one key", "alone", one()).unwrap(), 1);
}

#[distributed_lock(key = ["{{a}}", "{BANK}", r#"b:"{id}""#, "c:\u{64}",])]
async fn mixed(id: u32) -> Result<u32> {
    pause().await;
    Ok(id)
}

#[test]
fn literals_of_all_kinds() {
    let call = mixed(1);
    assert_eq!(shape("literals of all kinds", "{a}", call).unwrap(), 1);
    let key = key!("{BANK}");
    assert_eq!(shape("a constant among them", key, mixed(2)).unwrap(), 2);
}

#[distributed_lock(key = ["from:{from}", "to:{to}:{N}"])]
async fn generic<T, const N: usize>(from: T, to: impl fmt::Display + Send + Sync) -> Result<String>
where
    T: fmt::Display + Sync,
{
    pause().await;
    Ok(format!("{from}{to}{N}"))
}

#[test]
fn generics() {
    let call = generic::<_, 3>(String::from("a"), 'b');
    assert_eq!(shape("keys of generics", "from:a", call).unwrap(), "ab3");
}

impl Shop {
    #[distributed_lock(key = ["shop:{self.name}", "shop:{other.name}"])]
    async fn merge(&mut self, other: &mut Shop) -> Result<u32> {
        pause().await;
        self.sold += std::mem::take(&mut other.sold);
        Ok(self.sold)
    }
}

#[test]
fn mutable_receivers() {
    let (mut all, mut other) = (
        shop(),
        Shop {
            name: "paris",
            sold: 2,
        },
    );
    let call = all.merge(&mut other);
    let sold = shape("two keys of &mut self", "shop:berlin", call);
    assert_eq!(sold.unwrap(), 2);
}

#[async_trait]
trait Bank {
    async fn pay(&mut self, pair: (u32, u32), item: &Item) -> Result<u32>;
}

#[async_trait]
impl Bank for Shop {
    #[distributed_lock(key = ["{self.name}:{from}", "{self.name}:{to}", "{item.id}"])]
    async fn pay(&mut self, (from, to): (u32, u32), item: &Item) -> Result<u32> {
        pause().await;
        self.sold += item.id;
        Ok(self.sold + from + to)
    }
}

#[test]
fn boxed_methods() {
    let (mut shop, item) = (shop(), lamp());
    let call = shop.pay((1, 2), &item);
    let paid = shape("#[async_trait]: three keys", "berlin:1", call);
    assert_eq!(paid.unwrap(), 10);
}

struct Counter;

impl Counter {
    fn value(&self) -> Rc<u32> {
        let Self = self;
        Rc::new(1)
    }
}

#[distributed_lock(key = ["first:{counter.value()}", "second:{counter.value()}"])]
async fn temporaries(counter: &Counter) -> Result<()> {
    pause().await;
    let Counter = counter;
    Ok(())
}

#[test]
fn values_that_are_not_send() {
    let call = temporaries(&Counter);
    shape("keys of temporaries that are not Send", "first:1", call).unwrap();
}

#[distributed_lock(key = ["moved:{name}", "moved:{name}:too"], wait = "0s", on_error = |error| Err((name.len(), error)))]
async fn handled(name: &str) -> Result<String, (usize, LockError)> {
    pause().await;
    Ok(name.to_owned())
}

#[test]
fn failures() {
    let (length, _) = refused("two keys and on_error", "moved:a", handled("a")).unwrap_err();
    assert_eq!(length, 1);
}

macro_rules! written {
    ($name:ident, $first:literal, $second:expr, $keys:expr) => {
        mod $name {
            use super::{Result, distributed_lock, pause};

            #[distributed_lock(key = [$first, $second])]
            pub(super) async fn elements(id: u32) -> Result<u32> {
                pause().await;
                Ok(id)
            }

            #[distributed_lock(key = $keys)]
            pub(super) async fn whole(id: u32) -> Result<u32> {
                pause().await;
                Ok(id)
            }
        }
    };
}
written!(written, "a:{id}", "b:{id}", ["c:{id}", "d:{id + 1}"]);

#[test]
fn fragments() {
    let elements = shape("keys as fragments", "a:1", written::elements(1));
    let whole = shape("an array as a fragment", "c:2", written::whole(2));
    assert_eq!(elements.unwrap() + whole.unwrap(), 3);
}

#[distributed_lock(key = ["open:{id}", "open:all"])]
async fn dynamic(id: u32) -> Result<u32, Box<dyn std::error::Error>> {
    pause().await;
    let sold: Result<u32> = Err(ShopError::SoldOut);
    Ok(sold? + id)
}

#[test]
fn errors_that_are_not_send() {
    let error = shape("two keys and Box<dyn Error>", "open:1", dynamic(1));
    assert_eq!(error.unwrap_err().to_string(), "sold out");
}

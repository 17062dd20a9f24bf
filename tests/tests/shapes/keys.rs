//! Keys: every form of a placeholder.

use std::{collections::HashMap, fmt, rc::Rc};

use lock_runtime::{distributed_lock, key};

use crate::harness::shape;
use crate::shop::{Item, Result, Shop, lamp, pause, shop};

const SHOP: &str = "berlin:1";

mod limits {
    pub(super) const SHELF: u8 = 4;
}

#[distributed_lock(key = "nightly")]
async fn fixed() -> Result<()> {
    pause().await;
    Ok(())
}

#[test]
fn text_alone() {
    shape("a key of text alone", "nightly", fixed()).unwrap();
}

#[distributed_lock(key = "{shop.name}:{items.len()}:{items[0].tags[1]}")]
async fn fields(shop: &Shop, items: &[Item]) -> Result<()> {
    pause().await;
    let _ = (shop, items);
    Ok(())
}

#[test]
fn fields_methods_and_indices() {
    let (shop, items) = (shop(), [lamp()]);
    let call = fields(&shop, &items);
    shape("fields, methods and indices", "berlin:1:small", call).unwrap();
}

#[distributed_lock(key = "{id:08}:{hex:#x}:{part:.2}:{text:?}:{text:>4}")]
async fn specs(id: u32, hex: u8, part: f32, text: &str) -> Result<()> {
    pause().await;
    let _ = (id, hex, part, text);
    Ok(())
}

#[test]
fn formats() {
    let call = specs(7, 255, 1.0, "a");
    shape("format specs", "00000007:0xff:1.00:\"a\":   a", call).unwrap();
}

#[distributed_lock(key = "{{{id}}}:{{literal}}")]
async fn braces(id: u32) -> Result<()> {
    pause().await;
    let _ = id;
    Ok(())
}

#[test]
fn literal_braces() {
    shape("literal braces", "{1}:{literal}", braces(1)).unwrap();
}

#[distributed_lock(key = "{SHOP}:{limits::SHELF}:{Shop::DOOR}:{u8::MAX}")]
async fn constants() -> Result<()> {
    pause().await;
    Ok(())
}

impl Shop {
    const DOOR: char = 'b';
}

#[test]
fn named_constants() {
    let key = key!("{SHOP}:4:b:255");
    shape("constants", key, constants()).unwrap();
}

#[distributed_lock(key = r#"raw:{prices["a"]}:{prices["b"]}"#)]
async fn raw(prices: &HashMap<&str, u32>) -> Result<()> {
    pause().await;
    let _ = prices;
    Ok(())
}

#[test]
fn raw_strings() {
    let prices = HashMap::from([("a", 1), ("b", 2)]);
    shape("a raw string with quotes in it", "raw:1:2", raw(&prices)).unwrap();
}

#[distributed_lock(key = "{a + b}:{*c}:{u64::from(a) << 4:03}:{if *c { 1 } else { 2 }}:{-d}")]
async fn expressions(a: u32, b: u32, c: &bool, d: i8) -> Result<()> {
    pause().await;
    let _ = (a, b, c, d);
    Ok(())
}

#[test]
fn whole_expressions() {
    let call = expressions(1, 2, &true, 3);
    shape("whole expressions", "3:true:016:1:-3", call).unwrap();
}

#[distributed_lock(key = "\u{6c}amp:\
                          {id}\t:{id}:")]
async fn escapes(id: u32) -> Result<()> {
    pause().await;
    let _ = id;
    Ok(())
}

#[test]
fn escapes_in_the_literal() {
    shape("a literal with escapes", "lamp:1\t:1:", escapes(1)).unwrap();
}

struct Account(String);

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[distributed_lock(key = "{from:5}:{to}")]
async fn transfer(from: Account, to: Account) -> Result<String> {
    pause().await;
    Ok(from.0 + &to.0)
}

#[test]
fn values_that_imitate_the_text() {
    let (from, to) = ("a:b", "}%");
    let call = transfer(Account(from.to_owned()), Account(to.to_owned()));
    shape(
        "values with the text's own characters",
        key!("{from:5}:{to}"),
        call,
    )
    .unwrap();
}

struct Counter;

impl Counter {
    fn value(&self) -> Rc<u32> {
        let Self = self;
        Rc::new(1)
    }
}

#[distributed_lock(key = "{counter.value()}:{counter.value():?}")]
async fn temporaries(counter: &Counter) -> Result<()> {
    pause().await;
    let Counter = counter;
    Ok(())
}

#[test]
fn values_that_are_not_send() {
    let call = temporaries(&Counter);
    shape("temporaries that are not Send", "1:1", call).unwrap();
}

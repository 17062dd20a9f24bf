//! Generics, lifetimes, and what stands around a signature.

use std::{fmt, future::ready};

use lock_runtime::distributed_lock;

use crate::harness::shape;
use crate::shop::{Item, Result, lamp, pause};

#[distributed_lock(key = "generic:{value}")]
async fn bounded<T>(value: &T, times: usize) -> Result<String>
where
    T: fmt::Display + Sync + ?Sized,
{
    pause().await;
    Ok(value.to_string().repeat(times))
}

#[test]
fn type_parameters() {
    let call = bounded("a", 3);
    let text = shape("type parameters and a where clause", "generic:a", call);
    assert_eq!(text.unwrap(), "aaa");
}

#[distributed_lock(key = "shard:{N}:{SIGNED}")]
async fn constants<const N: usize, const SIGNED: bool>(bytes: [u8; N]) -> Result<[u8; N]> {
    pause().await;
    Ok(bytes)
}

#[test]
fn const_parameters() {
    let call = constants::<2, true>([1, 2]);
    let bytes = shape("const parameters", "shard:2:true", call);
    assert_eq!(bytes.unwrap(), [1, 2]);
}

#[distributed_lock(key = "longer:{first}:{second}")]
async fn named<'a, 'b: 'a>(first: &'a str, second: &'b str) -> Result<&'a str> {
    pause().await;
    let second_is_longer = second.len() > first.len();
    Ok(if second_is_longer { second } else { first })
}

#[test]
fn named_lifetimes() {
    let (first, second) = (String::from("a"), String::from("bb"));
    let call = named(&first, &second);
    let longer = shape("named lifetimes", "longer:a:bb", call);
    assert_eq!(longer.unwrap(), "bb");
}

struct Words<'t>(&'t str);

#[distributed_lock(key = "first:{words.0}")]
async fn elided(words: Words<'_>, _reason: &str) -> Result<usize> {
    pause().await;
    Ok(words.0.split(' ').count())
}

#[test]
fn elided_lifetimes() {
    let text = String::from("two words");
    let call = elided(Words(&text), "");
    assert_eq!(
        shape("elided lifetimes", "first:two words", call).unwrap(),
        2
    );
}

#[distributed_lock(key = "tag:{item.id}")]
async fn borrowing(item: &mut Item) -> Result<&mut Vec<&'static str>> {
    pause().await;
    Ok(&mut item.tags)
}

#[test]
fn a_borrow_of_an_argument() {
    let mut item = lamp();
    let call = borrowing(&mut item);
    let tags = shape("a mutable borrow that is returned", "tag:7", call);
    tags.unwrap().push("new");
    assert_eq!(item.tags.len(), 3);
}

#[distributed_lock(key = "impl:{label}")]
async fn opaque(
    label: impl fmt::Display + Send + Sync,
    items: impl Iterator<Item = u32> + Send,
) -> Result<u32> {
    pause().await;
    Ok(items.sum())
}

#[test]
fn opaque_arguments() {
    let call = opaque("x", [1, 2].into_iter());
    assert_eq!(shape("impl Trait arguments", "impl:x", call).unwrap(), 3);
}

#[distributed_lock(key = "dyn:{label}")]
async fn objects(
    label: &(dyn fmt::Display + Sync),
    work: Box<dyn Fn(u32) -> u32 + Send>,
) -> Result<u32> {
    pause().await;
    Ok(work(1))
}

#[test]
fn trait_objects() {
    let call = objects(&"x", Box::new(|n| n + 1));
    assert_eq!(shape("dyn Trait arguments", "dyn:x", call).unwrap(), 2);
}

#[distributed_lock(key = "callback")]
async fn callbacks<W, F>(work: W) -> Result<u32>
where
    W: FnOnce(u32) -> F,
    F: Future<Output = u32>,
{
    Ok(work(4).await)
}

#[test]
fn functions_as_arguments() {
    let call = callbacks(|n| ready(n * 2));
    assert_eq!(
        shape("a callback that is awaited", "callback", call).unwrap(),
        8
    );
}

#[allow(improper_ctypes_definitions, reason = "futures have no C layout")]
#[distributed_lock(key = "extern:{id}")]
async extern "C" fn foreign(id: u32) -> Result<u32> {
    pause().await;
    Ok(id)
}

#[test]
fn another_abi() {
    assert_eq!(shape("extern \"C\"", "extern:1", foreign(1)).unwrap(), 1);
}

mod storage {
    use super::{Result, distributed_lock, pause};

    /// Documents, lints and visibility stay where they are.
    #[must_use = "the count is the point"]
    #[inline]
    #[distributed_lock(key = "visible")]
    #[allow(clippy::unreadable_literal)]
    pub(in crate::generics) async fn visible() -> Result<u32> {
        pause().await;
        Ok(1000000)
    }
}

#[test]
fn attributes_and_visibility() {
    let call = storage::visible();
    let count = shape("attributes and a visibility around it", "visible", call);
    assert_eq!(count.unwrap(), 1_000_000);
}

#[test]
fn within_a_function() {
    #[distributed_lock(key = "inner:{id}")]
    async fn inner(id: u32) -> Result<u32> {
        pause().await;
        Ok(id)
    }
    let call = inner(3);
    assert_eq!(
        shape("a function in a function", "inner:3", call).unwrap(),
        3
    );
}

//! Return types: aliases, coercions, and what inference needs to know.

use std::{collections::BTreeMap, error::Error, fmt, io};

use lock_runtime::{FromLockError, LockError, distributed_lock};

use crate::harness::{refused, shape};
use crate::shop::{Result, ShopError, pause};

#[distributed_lock(key = "plain")]
async fn plain() -> std::result::Result<u32, LockError> {
    pause().await;
    Ok(1)
}

#[test]
fn lock_errors() {
    assert_eq!(shape("Result<_, LockError>", "plain", plain()).unwrap(), 1);
}

/// What `anyhow` defines: an alias with a default, and an error made of every other.
mod any {
    pub(super) type Result<T, E = Error> = std::result::Result<T, E>;

    pub(super) struct Error(pub(super) Box<dyn std::error::Error + Send + Sync>);

    impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
        fn from(error: E) -> Self {
            Self(Box::new(error))
        }
    }
}

#[distributed_lock(key = "any")]
async fn any(text: &str) -> any::Result<u32> {
    pause().await;
    Ok(text.parse()?)
}

#[test]
fn an_alias_with_an_error_for_all() {
    let number = shape("an alias as anyhow::Result", "any", any("5"));
    assert!(matches!(number, Ok(5)));
    let error = shape("? into an error as anyhow::Error", "any", any("x"));
    assert!(error.is_err_and(|error| error.0.to_string().contains("digit")));
}

#[distributed_lock(key = "dyn")]
async fn dynamic(text: &str) -> Result<u32, Box<dyn Error>> {
    pause().await;
    if text.is_empty() {
        return Err("nothing to parse".into());
    }
    Ok(text.parse()?)
}

#[test]
fn errors_that_are_not_send() {
    let number = shape(
        "Result<_, Box<dyn Error>>, whose future is Send",
        "dyn",
        dynamic("5"),
    );
    assert_eq!(number.unwrap(), 5);
}

#[distributed_lock(key = "dyn")]
async fn dynamic_and_send() -> Result<u32, Box<dyn Error + Send + Sync + 'static>> {
    pause().await;
    Ok("6".parse()?)
}

#[test]
fn errors_that_are_send() {
    let call = dynamic_and_send();
    let number = shape("Result<_, Box<dyn Error + Send + Sync>>", "dyn", call);
    assert_eq!(number.unwrap(), 6);
}

#[distributed_lock(key = "io", on_error = |error| Err(io::Error::other(error)))]
async fn input() -> io::Result<usize> {
    pause().await;
    io::copy(&mut &b"abc"[..], &mut io::sink())?
        .try_into()
        .map_err(io::Error::other)
}

#[test]
fn errors_of_input_and_output() {
    assert_eq!(shape("io::Result", "io", input()).unwrap(), 3);
}

#[distributed_lock(key = "impl:{number}")]
async fn opaque(number: u32) -> Result<impl fmt::Display + use<>> {
    if number > 100 {
        return Err(ShopError::SoldOut);
    }
    pause().await;
    Ok(number)
}

#[test]
fn an_opaque_value_in_a_result() {
    let call = opaque(1);
    assert_eq!(
        shape("Result<impl Trait, _>", "impl:1", call)
            .unwrap()
            .to_string(),
        "1"
    );
}

#[distributed_lock(key = "impl", on_error = |_| "locked")]
async fn all_opaque() -> impl fmt::Display {
    pause().await;
    "text"
}

#[test]
fn an_opaque_value() {
    let call = all_opaque();
    assert_eq!(shape("-> impl Trait", "impl", call).to_string(), "text");
}

#[distributed_lock(key = "nested", on_error = |_| None)]
async fn nested_opaque(numbers: &[u32]) -> Option<(u32, Vec<impl Iterator<Item = u32>>)> {
    let first = *numbers.first()?;
    pause().await;
    Some((first, vec![numbers.iter().copied()]))
}

#[test]
fn opaque_values_within_others() {
    let call = nested_opaque(&[1, 2]);
    let (first, rest) = shape("impl Trait deep in the return type", "nested", call).unwrap();
    assert_eq!(first + rest.into_iter().flatten().sum::<u32>(), 4);
}

#[distributed_lock(key = "box")]
async fn boxed(number: u32) -> Result<Box<dyn fmt::Display>> {
    if number == 1 {
        return Ok(Box::new("one"));
    }
    pause().await;
    Ok(Box::new(number))
}

#[test]
fn boxes_of_trait_objects() {
    let call = boxed(1);
    let text = shape("Box<dyn Trait> with an early return", "box", call);
    assert_eq!(text.unwrap().to_string(), "one");
}

#[distributed_lock(key = "slice")]
async fn slice(long: bool) -> Result<&'static [u8]> {
    if long {
        return Ok(&[1, 2, 3]);
    }
    pause().await;
    Ok(&[1])
}

#[test]
fn arrays_as_slices() {
    let call = slice(true);
    assert_eq!(
        shape("an array as a slice", "slice", call).unwrap(),
        [1, 2, 3]
    );
}

#[distributed_lock(key = "fn", on_error = |_| u32::count_ones)]
async fn function(up: bool) -> fn(u32) -> u32 {
    if up {
        return |n| n + 1;
    }
    pause().await;
    |n| n - 1
}

#[test]
fn closures_as_functions() {
    let call = function(false);
    assert_eq!(shape("closures as a function pointer", "fn", call)(3), 2);
}

#[distributed_lock(key = "inferred")]
async fn inferred(text: &str) -> Result<BTreeMap<String, u64>> {
    let parsed = text.split(',').map(|word| Ok((word.into(), word.parse()?)));
    pause().await;
    parsed.collect()
}

#[test]
fn inference_from_the_return_type() {
    let call = inferred("1,2");
    let parsed = shape(
        "collect() and into() typed by the return type",
        "inferred",
        call,
    );
    assert_eq!(parsed.unwrap().into_values().sum::<u64>(), 3);
}

#[distributed_lock(key = "option", on_error = |_| None)]
async fn option(number: Option<u32>) -> Option<u32> {
    pause().await;
    Some(number? + 1)
}

#[test]
fn options() {
    assert_eq!(shape("Option with ?", "option", option(Some(1))), Some(2));
    assert_eq!(
        shape("Option with ? that returns", "option", option(None)),
        None
    );
}

#[distributed_lock(key = "unit", on_error = drop)]
async fn unit(done: &mut bool) {
    pause().await;
    *done = true;
}

#[test]
fn nothing() {
    let mut done = false;
    shape("nothing to return", "unit", unit(&mut done));
    assert!(done);
}

#[distributed_lock(key = "tuple", on_error = |_| (0, false))]
async fn tuple() -> (u32, bool) {
    pause().await;
    (1, true)
}

#[test]
fn tuples() {
    assert_eq!(shape("a tuple", "tuple", tuple()), (1, true));
}

/// A service's answer, with a place for the failure.
#[derive(Debug, PartialEq)]
enum Answer {
    Done(u32),
    Busy,
}

impl FromLockError for Answer {
    fn from_lock_error(_: LockError) -> Self {
        Self::Busy
    }
}

#[distributed_lock(key = "answer", wait = "0s")]
async fn answer() -> Answer {
    pause().await;
    Answer::Done(1)
}

#[test]
fn types_with_a_place_of_their_own() {
    let call = answer();
    assert_eq!(
        refused("a type that implements FromLockError", "answer", call),
        Answer::Busy
    );
    assert_ne!(Answer::Done(1), Answer::Busy);
}

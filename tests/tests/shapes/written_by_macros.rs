//! Functions that `macro_rules!` writes, with fragments in invisible groups.

use lock_runtime::distributed_lock;

use crate::harness::shape;
use crate::shop::{Result, pause};

macro_rules! whole {
    ($name:ident) => {
        #[distributed_lock(key = "whole:{id}:{text.len()}", on_error = |_| id)]
        async fn $name(id: u32, text: &str) -> u32 {
            pause().await;
            id + u32::from(text.is_empty())
        }
    };
}
whole!(whole);

#[test]
fn a_whole_function() {
    assert_eq!(shape("a function of a macro", "whole:1:0", whole(1, "")), 2);
}

macro_rules! parts {
    ($visibility:vis $name:ident, $key:literal, $argument:ident: $type:ty, $output:ty, $body:block) => {
        #[distributed_lock(key = $key, ttl = "1s")]
        $visibility async fn $name($argument: $type) -> $output $body
    };
}
parts!(pub(crate) parts, "parts:{id}", id: u32, Result<u32>, {
    pause().await;
    Ok(id)
});

#[test]
fn fragments() {
    let call = parts(1);
    assert_eq!(shape("fragments of all kinds", "parts:1", call).unwrap(), 1);
}

macro_rules! locked {
    ($function:item) => {
        #[distributed_lock(key = "item:{id}")]
        $function
    };
}
locked! {
    async fn item(id: u32) -> Result<u32> {
        pause().await;
        Ok(id)
    }
}

#[test]
fn an_item() {
    let call = item(1);
    assert_eq!(
        shape("the attribute on an item fragment", "item:1", call).unwrap(),
        1
    );
}

macro_rules! forwarded {
    ($(#[$attribute:meta])* $name:ident $body:tt) => {
        $(#[$attribute])*
        async fn $name(id: u32) -> Result<u32> $body
    };
}
forwarded! {
    /// With a document of its own.
    #[distributed_lock(key = "forwarded:{id}")]
    forwarded { pause().await; Ok(5) }
}

#[test]
fn an_attribute_that_is_passed_on() {
    let call = forwarded(1);
    let five = shape(
        "the attribute as an argument of a macro",
        "forwarded:1",
        call,
    );
    assert_eq!(five.unwrap(), 5);
}

macro_rules! values {
    ($ttl:expr, $wait:path, $renew:literal, $handler:expr, $guard:ident, $output:ty) => {
        #[distributed_lock(key = "values", ttl = $ttl, wait = $wait, renew = $renew, on_error = $handler, guard = $guard)]
        async fn values() -> $output {
            pause().await;
            assert!($guard.is_held());
        }
    };
}
const WAIT: std::time::Duration = std::time::Duration::from_secs(5);
values!("60s", WAIT, false, |error| panic!("{error}"), held, ());

#[test]
fn values_of_arguments() {
    shape(
        "arguments of the attribute as fragments",
        "values",
        values(),
    );
}

macro_rules! never {
    ($never:ty) => {
        #[distributed_lock(key = "never", on_error = |error| panic!("{error}"))]
        async fn never(started: tokio::sync::oneshot::Sender<()>) -> $never {
            started.send(()).unwrap();
            std::future::pending().await
        }
    };
}
never!(!);

#[test]
fn a_return_type_that_is_never() {
    let (started, has_started) = tokio::sync::oneshot::channel();
    let call = async {
        tokio::select! {
            never = never(started) => never,
            started = has_started => started.unwrap(),
        }
    };
    shape("-> ! as a fragment", "never", call);
}

/// Two arguments of one name, which come from different places.
macro_rules! hygienic {
    ($id:ident) => {
        #[distributed_lock(key = "hygiene:{id}")]
        async fn hygienic($id: u32, id: u32) -> Result<u32> {
            pause().await;
            Ok($id * 10 + id)
        }
    };
}
hygienic!(id);

#[test]
fn names_of_two_places() {
    let call = hygienic(1, 2);
    let both = shape("one name from two places", "hygiene:2", call);
    assert_eq!(both.unwrap(), 12);
}

/// A key that is written where the macro is used, beside a name of the macro's own.
macro_rules! key_of {
    ($key:literal) => {{
        let id = "the macro's";
        (lock_runtime::key!($key), id)
    }};
}

#[test]
fn names_of_a_key_that_a_macro_takes() {
    let id = 7;
    let (key, _) = key_of!("hygiene:{id}");
    assert_eq!(key.unwrap().to_string(), "hygiene:7");
    assert_eq!(id, 7, "used also if the key has another");
}

//! Patterns of arguments, their names, and when they are dropped.

use std::sync::{Arc, Mutex};

use futures_executor::block_on;
use lock_runtime::{LockManager, distributed_lock, key};
use tokio::sync::Notify;

use crate::harness::{self, manager, shape, shape_on};
use crate::shop::{Item, Result, lamp, pause};

struct Meters(u32);

#[allow(clippy::toplevel_ref_arg)]
#[distributed_lock(key = "{id}:{a}:{b}:{c}:{first}:{count}:{length}:{whole:?}")]
async fn patterns(
    Item { id, tags }: Item,
    (a, (b, _)): (u8, (u8, u8)),
    &c: &u8,
    [first, .., _last]: [u8; 3],
    ref count: usize,
    Meters(length): Meters,
    whole @ (_, right): (u8, u8),
) -> Result<usize> {
    pause().await;
    let bytes = [a, b, c, first, whole.0, right];
    Ok(usize::from(bytes.iter().sum::<u8>()) + count + tags.len() + (id + length) as usize)
}

#[test]
fn destructured() {
    let whole = (8, 9);
    let call = patterns(lamp(), (1, (2, 0)), &3, [4, 0, 0], 5, Meters(6), whole);
    let key = key!("7:1:2:3:4:5:6:{whole:?}");
    let sum = shape("destructured arguments", key, call);
    assert_eq!(sum.unwrap(), 27 + 5 + 2 + 13);
}

#[distributed_lock(key = "mut:{count}")]
async fn mutable(mut count: u32, mut text: String) -> Result<String> {
    count += 1;
    pause().await;
    text.push_str(&count.to_string());
    Ok(text)
}

#[test]
fn mutable_arguments() {
    let call = mutable(1, String::from("n"));
    assert_eq!(shape("mut arguments", "mut:1", call).unwrap(), "n2");
}

#[distributed_lock(key = "ignored")]
async fn ignored(_: &str, _unused: u32, _: Vec<u8>) -> Result<()> {
    pause().await;
    Ok(())
}

#[test]
fn ignored_arguments() {
    let call = ignored("", 1, Vec::new());
    shape("_ and _unused arguments", "ignored", call).unwrap();
}

#[distributed_lock(key = "raw:{type}:{r#match:03}:{self_}")]
async fn r#async(r#type: u32, r#match: u8, self_: &str) -> Result<u32> {
    pause().await;
    Ok(r#type + u32::from(r#match) + u32::from(self_.is_empty()))
}

#[test]
fn raw_names() {
    let call = r#async(1, 2, "x");
    let sum = shape("raw identifiers", "raw:1:002:x", call);
    assert_eq!(sum.unwrap(), 3);
}

#[distributed_lock(key = "größe:{größe}")]
async fn letters(größe: u32) -> Result<u32> {
    pause().await;
    Ok(größe)
}

#[test]
fn names_of_other_alphabets() {
    let call = letters(4);
    assert_eq!(shape("names beyond ASCII", "größe:4", call).unwrap(), 4);
}

#[distributed_lock(key = "cfg:{here}")]
async fn configured(
    #[cfg(any())] absent: NoSuchType,
    #[cfg(test)] here: u32,
    #[allow(unused_variables)] unused: u32,
) -> Result<u32> {
    pause().await;
    Ok(here)
}

#[test]
fn configured_arguments() {
    let call = configured(1, 2);
    assert_eq!(shape("cfg on arguments", "cfg:1", call).unwrap(), 1);
}

#[distributed_lock(
    key = "{lock_key}:{lock_request}:{lock_guard}:{lock_error}:{lock_output}:{key_writer}"
)]
async fn like_generated(
    lock_key: u32,
    lock_request: u32,
    lock_guard: u32,
    lock_error: u32,
    lock_output: u32,
    key_writer: u32,
) -> Result<u32> {
    pause().await;
    Ok(lock_key + lock_request + lock_guard + lock_error + lock_output + key_writer)
}

#[test]
fn names_of_generated_variables() {
    let call = like_generated(1, 2, 3, 4, 5, 6);
    let sum = shape(
        "arguments named like generated variables",
        "1:2:3:4:5:6",
        call,
    );
    assert_eq!(sum.unwrap(), 21);
}

#[distributed_lock(key = "moved:{text}")]
async fn moved(text: String) -> Result<String> {
    let text = tokio::spawn(async move { text + "!" }).await;
    Ok(text.unwrap())
}

#[test]
fn moved_into_the_body() {
    let call = moved(String::from("a"));
    let text = shape(
        "an argument of the key that the body moves",
        "moved:a",
        call,
    );
    assert_eq!(text.unwrap(), "a!");
}

#[distributed_lock(key = "changed:{count}")]
async fn changed(count: &mut u32) -> Result<()> {
    *count += 1;
    pause().await;
    *count += 1;
    Ok(())
}

#[test]
fn changed_by_the_body() {
    let mut count = 1;
    let call = changed(&mut count);
    shape(
        "an argument of the key that the body changes",
        "changed:1",
        call,
    )
    .unwrap();
    assert_eq!(count, 3);
}

/// Notes at its drop whether the lock of `drops` is held at that moment.
struct Noted(
    &'static str,
    LockManager,
    Arc<Mutex<Vec<(&'static str, bool)>>>,
);

impl Noted {
    fn name(&self) -> &'static str {
        self.0
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let free = self.1.lock("drops").wait(std::time::Duration::ZERO);
        let held = block_on(free.acquire()).is_err();
        self.2.lock().unwrap().push((self.0, held));
    }
}

#[distributed_lock(key = "drops", manager = locks)]
async fn drops(
    locks: &LockManager,
    used: Noted,
    copied: Noted,
    _unused: Noted,
    _: Noted,
    local: Noted,
) -> Result<&'static str> {
    let local = local;
    pause().await;
    assert_eq!((local.name(), used.name()), ("local", "used"));
    Ok(copied.0)
}

// Section: expansion.md#when-arguments-are-dropped
#[test]
fn dropped_before_the_release() {
    let locks = manager();
    let notes = Arc::default();
    let [used, copied, unused, ignored, local] = ["used", "copied", "unused", "_", "local"]
        .map(|name| Noted(name, locks.clone(), Arc::clone(&notes)));
    let call = drops(&locks, used, copied, unused, ignored, local);
    let name = "what the body uses is dropped before the release";
    shape_on(&locks, name, "drops", call).unwrap();
    let dropped_under_the_lock = ["local", "used"].map(|name| (name, true));
    let dropped_after_it = ["_", "unused", "copied"].map(|name| (name, false));
    let notes = notes.lock().unwrap();
    assert_eq!(notes[..2], dropped_under_the_lock);
    assert_eq!(notes[2..], dropped_after_it);
}

#[distributed_lock(key = "drops", manager = locks)]
async fn stays(locks: &LockManager, used: Noted, begun: &Notify) -> Result<()> {
    begun.notify_one();
    std::future::pending::<()>().await;
    assert_eq!(used.name(), "used");
    Ok(())
}

// Section: expansion.md#when-arguments-are-dropped
#[test]
fn dropped_before_the_release_of_a_call_that_is_dropped() {
    let (locks, begun, notes) = (manager(), Notify::new(), Arc::default());
    let used = Noted("used", locks.clone(), Arc::clone(&notes));
    harness::block_on(async {
        tokio::select! {
            ended = stays(&locks, used, &begun) => ended.unwrap(),
            () = begun.notified() => {}
        }
    });
    assert_eq!(*notes.lock().unwrap(), [("used", true)]);
    println!("shape: what the body uses is dropped before the release when the call is dropped");
}

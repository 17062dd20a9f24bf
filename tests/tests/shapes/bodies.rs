//! Bodies: control flow, inner attributes, recursion, and what is not `Send`.

use std::{cell::Cell, rc::Rc};

use lock_runtime::distributed_lock;
use tokio::{sync::oneshot, task::LocalSet};

use crate::harness::{local_shape, manager, shape, shape_on};
use crate::shop::{Item, Result, ShopError, lamp, pause};

#[distributed_lock(key = "early:{item.id}")]
async fn early(item: &Item, wanted: usize) -> Result<usize> {
    if wanted > item.tags.len() {
        return Err(ShopError::SoldOut);
    }
    for (at, tag) in item.tags.iter().enumerate() {
        pause().await;
        if tag.starts_with('s') {
            return Ok(at);
        }
    }
    Ok(wanted)
}

#[test]
fn early_returns() {
    let item = lamp();
    let found = shape("early returns", "early:7", early(&item, 2));
    assert_eq!(found.unwrap(), 1);
    let refused = shape("an early return of an error", "early:7", early(&item, 3));
    assert!(matches!(refused, Err(ShopError::SoldOut)));
}

#[distributed_lock(key = "parse")]
async fn parse(text: &str) -> Result<u32> {
    pause().await;
    let number: u32 = text.parse()?;
    Ok(number + "1".parse::<u32>()?)
}

#[test]
fn question_marks() {
    assert_eq!(shape("? that converts", "parse", parse("2")).unwrap(), 3);
    let error = shape("? that returns", "parse", parse("two"));
    assert!(matches!(error, Err(ShopError::NotANumber)));
}

#[distributed_lock(key = "labels")]
async fn labels(limit: u32) -> Result<u32> {
    let mut count = 0;
    let found = 'locked: {
        loop {
            count += 1;
            pause().await;
            if count == limit {
                break 'locked count * 10;
            }
        }
    };
    Ok(found)
}

#[test]
fn labelled_blocks() {
    let call = labels(3);
    assert_eq!(
        shape("a label like the generated one", "labels", call).unwrap(),
        30
    );
}

#[distributed_lock(key = "items:{SIZE}")]
async fn items(count: u32) -> Result<u32> {
    const SIZE: u32 = 3;
    fn twice(n: u32) -> u32 {
        n * 2
    }
    struct Pair(u32, u32);
    let Pair(a, b) = Pair(count, SIZE);
    pause().await;
    Ok(twice(a) + b)
}

/// What the key of `items` says; a constant in the body is another one.
const SIZE: u32 = 5;

#[test]
fn items_in_the_body() {
    let call = items(1);
    assert_eq!(shape("items in the body", "items:5", call).unwrap(), 5);
}

#[distributed_lock(key = "inner")]
async fn inner_attributes(unused: u32) -> Result<u32> {
    #![allow(unused_variables)]
    #![allow(clippy::unreadable_literal)]
    let unused_too = 1000000;
    pause().await;
    Ok(1)
}

#[test]
fn attributes_in_the_body() {
    let call = inner_attributes(0);
    assert_eq!(shape("inner attributes", "inner", call).unwrap(), 1);
}

#[distributed_lock(key = "depth:{depth}")]
async fn recursive(depth: u32) -> Result<u32> {
    if depth == 0 {
        return Ok(0);
    }
    Ok(1 + Box::pin(recursive(depth - 1)).await?)
}

#[test]
fn recursion() {
    let call = recursive(3);
    assert_eq!(shape("recursion", "depth:3", call).unwrap(), 3);
}

#[distributed_lock(key = "outer")]
async fn outer() -> Result<u32> {
    Ok(recursive(1).await? + parse("2").await?)
}

#[test]
fn one_calls_another() {
    assert_eq!(
        shape("locked functions in each other", "outer", outer()).unwrap(),
        4
    );
}

#[distributed_lock(key = "rc:{count.get()}")]
async fn not_send(count: Rc<Cell<u32>>) -> Result<u32> {
    count.set(count.get() + 1);
    pause().await;
    Ok(count.get())
}

#[test]
fn a_body_that_is_not_send() {
    let call = not_send(Rc::new(Cell::new(1)));
    let count = local_shape("a future that is not Send", "rc:1", call);
    assert_eq!(count.unwrap(), 2);
}

#[test]
fn a_task_on_its_thread() {
    let locks = manager();
    let tasks = LocalSet::new();
    let call = locks.scope(not_send(Rc::new(Cell::new(1))));
    let task = tasks.spawn_local(call);
    let call = async { tasks.run_until(task).await.unwrap() };
    let count = shape_on(&locks, "a LocalSet", "rc:1", call);
    assert_eq!(count.unwrap(), 2);
}

#[distributed_lock(key = "forever", on_error = |error| panic!("{error}"))]
async fn forever(started: oneshot::Sender<u32>) -> ! {
    started.send(1).unwrap();
    loop {
        pause().await;
    }
}

#[test]
fn a_body_that_never_returns() {
    let (started, has_started) = oneshot::channel();
    let call = async {
        tokio::select! {
            never = forever(started) => never,
            started = has_started => started.unwrap(),
        }
    };
    assert_eq!(shape("-> !", "forever", call), 1);
}

#[distributed_lock(key = "panics")]
async fn panics() -> Result<()> {
    pause().await;
    std::panic::resume_unwind(Box::new("on purpose"))
}

#[test]
fn a_panic_releases() {
    let locks = manager();
    let call = async {
        let panicked = tokio::spawn(locks.scope(panics())).await;
        assert!(panicked.unwrap_err().is_panic());
        let guard = locks.lock("panics").acquire().await.unwrap();
        guard.release();
    };
    shape_on(&locks, "a body that panics", "panics", call);
}

#[distributed_lock(key = "empty")]
async fn half_written(item: &Item) -> Result<()> {
    let _ = item;
    todo!()
}

#[test]
fn a_body_that_is_still_to_be_written() {
    drop(half_written(&lamp()));
    println!("shape: todo!() with no warning of code that is never reached");
}

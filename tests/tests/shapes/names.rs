//! Names of the user's own that are names of the standard library too.

use std::result::Result as StdResult;

use lock_runtime::{LockError, distributed_lock};

use crate::harness::shape;

/// Modules and types as services call them, and worse.
mod shadowing {
    #![allow(dead_code, non_camel_case_types, unused_imports)]

    pub(super) mod std {}
    pub(super) mod core {}
    pub(super) mod lock_runtime {}

    pub(super) enum Result {
        Ok,
        Err,
    }
    pub(super) enum Option {
        Some,
        None,
    }
    pub(super) use Option::{None, Some};
    pub(super) use Result::{Err, Ok};

    pub(super) struct Box;
    pub(super) struct String;
    pub(super) struct LockError;
    pub(super) struct LockGuard;
    pub(super) struct bool;
    pub(super) struct u64;

    #[::lock_runtime::distributed_lock(key = "shadowed:{id}", ttl = "1s", wait = "2s", guard = lock)]
    pub(super) async fn shadowed(id: u32) -> ::std::result::Result<u32, ::lock_runtime::LockError> {
        crate::shop::pause().await;
        ::std::assert!(lock.is_held());
        ::std::result::Result::Ok(id)
    }
}

#[test]
fn modules_and_types() {
    let call = shadowing::shadowed(1);
    let id = shape(
        "modules that shadow std, core, Result, Ok, Box",
        "shadowed:1",
        call,
    );
    assert_eq!(id.unwrap(), 1);
}

mod bare {
    #![no_implicit_prelude]

    #[::lock_runtime::distributed_lock(key = "bare:{id}", on_error = |_| 0)]
    pub(super) async fn bare(id: u32) -> u32 {
        crate::shop::pause().await;
        id
    }
}

#[test]
fn no_prelude() {
    assert_eq!(shape("no_implicit_prelude", "bare:1", bare::bare(1)), 1);
}

/// A trait whose methods every type has, named like those that the expansion calls.
trait Everything: Sized {
    fn hold(&self, _: u8) {}
    fn release(&self, _: u8) {}
    fn value(&self, _: u8) {}
    fn write(&self, _: u8) {}
}

impl<T> Everything for T {}

#[distributed_lock(key = "methods:{id}")]
async fn methods(id: u32) -> StdResult<u32, LockError> {
    id.hold(0);
    id.release(0);
    id.value(0);
    crate::shop::pause().await;
    id.write(0);
    Ok(id)
}

#[test]
fn methods_of_every_type() {
    let call = methods(1);
    let id = shape(
        "a trait with methods like the generated calls",
        "methods:1",
        call,
    );
    assert_eq!(id.unwrap(), 1);
}

mod reexport {
    pub(crate) use lock_runtime as locking;
}

#[distributed_lock(key = "renamed:{id}", guard = lock, crate = crate::names::reexport::locking)]
async fn renamed(id: u32) -> StdResult<u32, LockError> {
    crate::shop::pause().await;
    assert!(lock.is_held());
    Ok(id)
}

#[test]
fn a_key_of_a_renamed_crate() {
    let id = 1;
    let key = lock_runtime::key!("renamed:{id}", crate = crate::names::reexport::locking);
    assert_eq!(key.unwrap(), "renamed:1");
}

#[test]
fn a_renamed_crate() {
    let call = renamed(1);
    assert_eq!(shape("crate = path", "renamed:1", call).unwrap(), 1);
}

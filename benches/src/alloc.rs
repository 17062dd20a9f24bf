//! An allocator that counts on request: live bytes of the process, allocations of the caller's thread and of all others.
#![allow(unsafe_code, reason = "an allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

/// The system's allocator, with counters that are off until [`start`].
#[derive(Debug)]
pub(crate) struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicI64 = AtomicI64::new(0);
static BY_CALLER: AtomicU64 = AtomicU64::new(0);
static BY_OTHERS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_CALLER: Cell<bool> = const { Cell::new(false) };
}

/// Numbers of allocations since [`start`]; a reallocation counts as one more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocations {
    /// By the thread that called [`start`].
    pub(crate) by_caller: u64,
    /// By all other threads.
    pub(crate) by_others: u64,
}

/// Counts from now on; this thread is the caller.
pub(crate) fn start() {
    IS_CALLER.set(true);
    ON.store(true, Relaxed);
}

/// The counts so far.
pub(crate) fn allocations() -> Allocations {
    Allocations {
        by_caller: BY_CALLER.load(Relaxed),
        by_others: BY_OTHERS.load(Relaxed),
    }
}

/// How many more bytes are allocated than at [`start`].
pub(crate) fn live_bytes() -> i64 {
    LIVE.load(Relaxed)
}

fn count(allocations: u64, bytes: i64) {
    if !ON.load(Relaxed) {
        return;
    }
    LIVE.fetch_add(bytes, Relaxed);
    let by = if IS_CALLER.get() {
        &BY_CALLER
    } else {
        &BY_OTHERS
    };
    by.fetch_add(allocations, Relaxed);
}

fn signed(size: usize) -> i64 {
    size.cast_signed() as i64
}

// SAFETY: every call goes to the system's allocator as it is; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, signed(layout.size()));
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -signed(layout.size()));
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(1, signed(layout.size()));
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, signed(size) - signed(layout.size()));
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

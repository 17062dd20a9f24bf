//! What the attribute adds to the size of a future.
//!
//! Section: expansion.md#what-it-costs

use lock_runtime::{LockManager, distributed_lock};

use crate::harness::manager;
use crate::shop::{Item, Result, lamp, pause};

/// The most bytes that the attribute may add.
const MOST: usize = 208;

/// One function with the attribute and without.
macro_rules! twins {
    ($name:ident($($argument:ident: $type:ty),*), $($attribute:tt)*) => {
        mod $name {
            use super::*;

            pub(super) async fn plain($($argument: $type),*) -> Result<u32> {
                pause().await;
                $(let _ = &$argument;)*
                Ok(1)
            }

            #[distributed_lock($($attribute)*)]
            pub(super) async fn locked($($argument: $type),*) -> Result<u32> {
                pause().await;
                $(let _ = &$argument;)*
                Ok(1)
            }
        }
    };
}

twins!(nothing(), key = "size");
twins!(number(id: u64), key = "size:{id}");
twins!(references(item: &Item, name: &str), key = "size:{item.id}:{name}");
twins!(owned(name: String, items: Vec<Item>), key = "size:{name}:{items.len()}");
twins!(sixty_four(bytes: [u8; 64]), key = "size:{bytes:?}");
twins!(every(name: &str, locks: &LockManager), key = "size:{name}", ttl = "1s", wait = "forever",
    guard = _lock, manager = locks, release = "confirmed");
twins!(handled(name: String), key = "size:{name}", on_error = |_| Ok(u32::MAX));
twins!(notified(name: String), key = "size:{name}", on_lost = "notify");
twins!(two_keys(from: u64, to: u64), key = ["size:{from}", "size:{to}"], min_hold = "1s", permits = 2);
twins!(large(bytes: [u8; 4096], name: &str), key = "size:{name}");
twins!(in_the_key(bytes: [u8; 4096]), key = "size:{bytes:?}");

/// Fails where the locked future is larger than the plain one by more than `copies` and [`MOST`].
fn costs<P, L>(name: &str, plain: &P, locked: &L, copies: usize) {
    let (plain, locked) = (size_of_val(plain), size_of_val(locked));
    assert!(
        locked <= plain + copies + MOST,
        "{name}: {plain} and {locked} bytes"
    );
    println!("shape: the future with {name}: {locked} bytes, {plain} without the attribute");
}

#[test]
fn small_arguments() {
    let (item, locks) = (lamp(), manager());
    costs("no argument", &nothing::plain(), &nothing::locked(), 0);
    costs("a number", &number::plain(1), &number::locked(1), 0);
    let name = "name";
    let plain = references::plain(&item, name);
    costs("references", &plain, &references::locked(&item, name), 0);
    let plain = owned::plain(name.into(), Vec::new());
    costs(
        "a String and a Vec",
        &plain,
        &owned::locked(name.into(), Vec::new()),
        0,
    );
    let plain = sixty_four::plain([0; 64]);
    costs("64 bytes", &plain, &sixty_four::locked([0; 64]), 0);
    let plain = every::plain(name, &locks);
    costs("every argument", &plain, &every::locked(name, &locks), 0);
    let plain = handled::plain(name.into());
    costs("on_error", &plain, &handled::locked(name.into()), 0);
    let plain = notified::plain(name.into());
    costs("on_lost", &plain, &notified::locked(name.into()), 0);
    let plain = two_keys::plain(1, 2);
    costs("two keys", &plain, &two_keys::locked(1, 2), 0);
}

#[test]
fn large_arguments() {
    let plain = large::plain([0; 4096], "name");
    costs("4096 bytes", &plain, &large::locked([0; 4096], "name"), 0);
    let plain = in_the_key::plain([0; 4096]);
    costs(
        "4096 bytes that the key names",
        &plain,
        &in_the_key::locked([0; 4096]),
        4096,
    );
}

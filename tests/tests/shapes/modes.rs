//! Who may hold the lock beside whom: modes, permits, reentrance.

use lock_runtime::distributed_lock;

use crate::harness::shape;
use crate::shop::{Result, Shop, pause, shop};

/// Functions that return 1, by the text of one argument.
macro_rules! one {
    ($($name:ident: $argument:ident = $value:expr;)*) => {$(
        #[test]
        fn $name() {
            #[distributed_lock(key = "one", $argument = $value)]
            async fn one() -> Result<u32> {
                pause().await;
                Ok(1)
            }
            let name = concat!(stringify!($argument), " = ", stringify!($value));
            assert_eq!(shape(name, "one", one()).unwrap(), 1);
        }
    )*};
}

one! {
    exclusive: mode = "exclusive";
    readers: mode = "read";
    writers: mode = "write";
    one_permit: permits = 1;
    four_permits: permits = 4;
    most_permits: permits = 4_294_967_295;
    permits_of_a_module: permits = limits::PERMITS;
    permits_of_a_type: permits = Shop::DOORS;
    reentrant: reentrant = true;
    not_reentrant: reentrant = false;
}

mod limits {
    pub(super) const PERMITS: u32 = 3;
}

impl Shop {
    const DOORS: u32 = 2;
}

trait Limited {
    const LIMIT: u32;

    async fn enter(&self) -> Result<u32>;
}

impl Limited for Shop {
    const LIMIT: u32 = 2;

    #[distributed_lock(key = "enter:{self.name}", permits = Self::LIMIT)]
    async fn enter(&self) -> Result<u32> {
        pause().await;
        Ok(self.sold)
    }
}

#[test]
fn permits_of_the_own_type() {
    let shop = shop();
    let call = shop.enter();
    let sold = shape("permits = Self::LIMIT", "enter:berlin", call);
    assert_eq!(sold.unwrap(), 0);
}

#[distributed_lock(key = "generic", permits = T::LIMIT)]
async fn generic<T: Limited + Sync>(limited: &T) -> Result<u32> {
    pause().await;
    let _ = limited;
    Ok(T::LIMIT)
}

#[test]
fn permits_of_a_type_parameter() {
    let shop = shop();
    let limit = shape("permits = T::LIMIT", "generic", generic(&shop));
    assert_eq!(limit.unwrap(), 2);
}

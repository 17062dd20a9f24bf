//! A shop has 50 lamps, and 200 customers buy one each at the same time.
//!
//! Look at `buy` and `buy_locked`: they differ by one attribute. Without it the
//! shop sells lamps that it does not have.
//!
//! ```text
//! cargo run --example quickstart
//! LOCK_URL=redis://127.0.0.1:6379 cargo run --example quickstart
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use lock_runtime::{LockError, distributed_lock};
use tokio::task::JoinSet;
use tokio::time::sleep;

const STOCK: u32 = 50;
const CUSTOMERS: u32 = 200;

/// Stands for a table in a database, which every machine reads and writes.
struct Shop {
    item: &'static str,
    stock: AtomicU32,
    longest_wait: AtomicU64,
}

#[derive(Debug, thiserror::Error)]
enum ShopError {
    #[error("sold out")]
    SoldOut,
    #[error(transparent)]
    Lock(#[from] LockError),
}

impl Shop {
    async fn buy(&self, came: Instant) -> Result<(), ShopError> {
        let waited = u64::try_from(came.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.longest_wait.fetch_max(waited, SeqCst);

        let left = self.stock.load(SeqCst); // read
        if left == 0 {
            return Err(ShopError::SoldOut);
        }
        sleep(Duration::from_millis(1)).await; // think
        self.stock.store(left - 1, SeqCst); // write
        Ok(())
    }

    #[distributed_lock(key = "stock:{self.item}", ttl = "10s", wait = "30s")]
    async fn buy_locked(&self, came: Instant) -> Result<(), ShopError> {
        self.buy(came).await
    }
}

#[tokio::main]
async fn main() -> Result<(), ShopError> {
    let url = std::env::var("LOCK_URL").unwrap_or_else(|_| "memory:".to_owned());
    let backend = url.split(':').next().unwrap_or_default();
    let _locks = lock_runtime::init(&url).await?;

    println!("{STOCK} lamps, {CUSTOMERS} customers, locks in {backend}");
    open_shop("without lock", false).await?;
    open_shop("with lock", true).await?;
    Ok(())
}

async fn open_shop(name: &str, locked: bool) -> Result<(), ShopError> {
    let shop = Arc::new(Shop {
        item: "lamp",
        stock: AtomicU32::new(STOCK),
        longest_wait: AtomicU64::new(0),
    });
    let opened = Instant::now();

    let mut customers = JoinSet::new();
    for _ in 0..CUSTOMERS {
        let shop = Arc::clone(&shop);
        customers.spawn(async move {
            if locked {
                shop.buy_locked(Instant::now()).await
            } else {
                shop.buy(Instant::now()).await
            }
        });
    }

    let (mut sold, mut refused) = (0_u32, 0_u32);
    for outcome in customers.join_all().await {
        match outcome {
            Ok(()) => sold += 1,
            Err(ShopError::SoldOut) => refused += 1,
            Err(error) => return Err(error),
        }
    }
    let oversold = sold.saturating_sub(STOCK);
    let time = opened.elapsed().as_millis();
    let wait = shop.longest_wait.load(SeqCst);
    println!(
        "{name:<12}   sold {sold:<3}  oversold {oversold:<3}  refused {refused:<3}  \
         time {time:>4} ms  longest wait {wait:>4} ms"
    );
    Ok(())
}

//! The cache is empty, and 200 requests want the same page at the same time.
//!
//! Look at `fill`: it looks into the cache again once it has the lock, since whoever had it before may have filled it.
//! One request loads the page, and the others find it. A request that finds it at once takes no lock.
//!
//! ```text
//! cargo run -p recipes --example cache_stampede
//! LOCK_URL=redis://127.0.0.1:6379 cargo run -p recipes --example cache_stampede
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use lock_runtime::{LockError, distributed_lock};
use moka::sync::Cache;
use tokio::task::JoinSet;
use tokio::time::sleep;

const REQUESTS: usize = 200;

struct Site {
    /// Stands for one that all machines share.
    cache: Cache<u32, Arc<str>>,
    loads: AtomicU32,
}

impl Site {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            cache: Cache::new(1000),
            loads: AtomicU32::new(0),
        })
    }

    async fn page(&self, id: u32) -> Arc<str> {
        match self.cache.get(&id) {
            Some(page) => page,
            None => self.load(id).await,
        }
    }

    async fn page_locked(&self, id: u32) -> Result<Arc<str>, LockError> {
        match self.cache.get(&id) {
            Some(page) => Ok(page),
            None => self.fill(id).await,
        }
    }

    #[distributed_lock(key = "page:{id}", wait = "30s")]
    async fn fill(&self, id: u32) -> Result<Arc<str>, LockError> {
        Ok(self.page(id).await)
    }

    /// What is slow: a query, a template.
    async fn load(&self, id: u32) -> Arc<str> {
        self.loads.fetch_add(1, SeqCst);
        sleep(Duration::from_millis(100)).await;
        let page = Arc::from(format!("page {id}"));
        self.cache.insert(id, Arc::clone(&page));
        page
    }
}

#[tokio::main]
async fn main() -> Result<(), LockError> {
    let url = std::env::var("LOCK_URL").unwrap_or_else(|_| "memory:".to_owned());
    let _locks = lock_runtime::init(url).await?;

    for locked in [false, true] {
        let site = Site::new();
        let mut requests = JoinSet::new();
        for _ in 0..REQUESTS {
            let site = Arc::clone(&site);
            requests.spawn(async move {
                if locked {
                    site.page_locked(7).await
                } else {
                    Ok(site.page(7).await)
                }
            });
        }
        for page in requests.join_all().await {
            assert_eq!(&*page?, "page 7");
        }
        let (name, loads) = (["without", "with"][usize::from(locked)], &site.loads);
        println!(
            "{name} lock: {REQUESTS} requests, loads: {}",
            loads.load(SeqCst)
        );
    }
    Ok(())
}

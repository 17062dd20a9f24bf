//! Ann sends money to Bob while Bob sends money to Ann.
//!
//! Look at the keys: each transfer names two accounts, and a third of them in the opposite order. Both locks are taken all or
//! none and in one order, so that no transfer waits for one that waits for it. Without the locks most transfers are lost.
//!
//! ```text
//! cargo run -p recipes --example transfer
//! LOCK_URL=redis://127.0.0.1:6379 cargo run -p recipes --example transfer
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lock_runtime::{LockError, distributed_lock};
use tokio::task::JoinSet;
use tokio::time::sleep;

const TRANSFERS: usize = 150;

/// Stands for a table in a database.
struct Bank(Mutex<HashMap<&'static str, i64>>);

impl Bank {
    fn read(&self, account: &str) -> i64 {
        let accounts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.get(account).copied().unwrap_or_default()
    }

    fn write(&self, account: &'static str, balance: i64) {
        let mut accounts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.insert(account, balance);
    }

    async fn transfer(&self, from: &'static str, to: &'static str) {
        let (rich, poor) = (self.read(from), self.read(to));
        sleep(Duration::from_millis(1)).await;
        self.write(from, rich - 1);
        self.write(to, poor + 1);
    }

    #[distributed_lock(key = ["account:{from}", "account:{to}"], wait = "30s")]
    async fn transfer_locked(&self, from: &'static str, to: &'static str) -> Result<(), LockError> {
        self.transfer(from, to).await;
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), LockError> {
    let url = std::env::var("LOCK_URL").unwrap_or_else(|_| "memory:".to_owned());
    let _locks = lock_runtime::init(url).await?;

    println!("ann sends 1 to bob 100 times, and bob sends 1 to ann 50 times; both had 1000");
    for locked in [false, true] {
        let accounts = HashMap::from([("ann", 1000), ("bob", 1000)]);
        let bank = Arc::new(Bank(Mutex::new(accounts)));
        let mut transfers = JoinSet::new();
        for number in 0..TRANSFERS {
            let (from, to) = if number % 3 == 0 {
                ("bob", "ann")
            } else {
                ("ann", "bob")
            };
            let bank = Arc::clone(&bank);
            transfers.spawn(async move {
                if locked {
                    bank.transfer_locked(from, to).await
                } else {
                    bank.transfer(from, to).await;
                    Ok(())
                }
            });
        }
        for done in transfers.join_all().await {
            done?;
        }
        let name = ["without", "with"][usize::from(locked)];
        let [ann, bob] = ["ann", "bob"].map(|account| bank.read(account));
        println!("{name} locks: ann {ann}, bob {bob}");
    }
    Ok(())
}

//! The lock ends while the work under it is still running.
//!
//! Look at what each of them learns: the body gets no further turn and is dropped where
//! it waits, so that its destructors run; the caller gets `LockError::Lost` with
//! the fencing token of the acquisition; the next holder has a larger one.
//!
//! A clock that is moved by hand stands in for what does this in earnest: the
//! machine slept, the process was stopped, the server could not be reached.
//!
//! ```text
//! cargo run --example lost_lease
//! ```

use std::time::Duration;

use lock_runtime::{Clock, FencingToken, LockConfig, LockError, distributed_lock};
use tokio::time::sleep;

#[distributed_lock(key = "report:{month}", ttl = "10s", guard = lock)]
async fn write_report(month: &str, pages: u32) -> Result<FencingToken, LockError> {
    let mut draft = Draft { pages: 0 };
    println!("writing with fencing token {}", lock.fencing_token());
    while draft.pages < pages {
        sleep(Duration::from_millis(50)).await;
        draft.pages += 1;
        println!("page {} of {pages}", draft.pages);
    }
    Ok(lock.fencing_token())
}

/// Says what the body had done when it ended.
struct Draft {
    pages: u32,
}

impl Drop for Draft {
    fn drop(&mut self) {
        println!("the body ends after page {}", self.pages);
    }
}

#[tokio::main]
async fn main() -> Result<(), LockError> {
    let clock = Clock::manual();
    let _locks = lock_runtime::init(LockConfig::new("memory:")?.clock(clock.clone())).await?;

    let night = tokio::spawn(async move {
        sleep(Duration::from_millis(175)).await;
        println!("... the machine sleeps for a minute ...");
        clock.advance(Duration::from_secs(60));
    });
    match write_report("november", 100).await {
        Err(LockError::Lost {
            key, fencing_token, ..
        }) => println!("caller: lost {key}, token {fencing_token}"),
        other => println!("caller: {other:?}"),
    }
    let _ = night.await;

    println!("again:");
    let fence = write_report("november", 2).await?;
    println!("caller: done, token {fence}");
    Ok(())
}

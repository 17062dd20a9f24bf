//! Stands for election again and again, and says when it leads and when it does not any more.

use std::time::Duration;

use lock_runtime::LockError;
use tests::connect;

/// Publishes `data` when it leads.
pub(crate) async fn candidate(url: &str, election: &str, data: &str, ttl: &str) {
    let locks = connect(url).await;
    let ttl = Duration::from_millis(ttl.parse().expect("milliseconds"));
    println!("connected");
    loop {
        let candidate = locks.election(election).candidate(data).ttl(ttl);
        match candidate.campaign().await {
            Ok(leadership) => {
                println!("{data} granted {}", leadership.fencing_token());
                leadership.lost().await;
                println!("{data} lost");
            }
            // Its server is out of reach for a while.
            Err(LockError::Unavailable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

//! Stands for election again and again, and says when it leads and when it does not any more.

use std::time::Duration;

use lock_runtime::LockError;
use tests::connect;
use tokio::select;

use crate::Orders;

/// Publishes `name` and the number of its campaign when it leads, and resigns at the order `resign FENCE`.
pub(crate) async fn candidate(
    mut orders: Orders,
    url: &str,
    election: &str,
    name: &str,
    ttl: &str,
) {
    let locks = connect(url).await;
    let ttl = Duration::from_millis(ttl.parse().expect("milliseconds"));
    println!("connected");
    for campaign in 1.. {
        let data = format!("{name} {campaign}");
        let candidate = locks.election(election).candidate(&*data).ttl(ttl);
        match candidate.campaign().await {
            Ok(leadership) => {
                println!("{data} granted {}", leadership.fencing_token());
                let resign = format!("resign {}", leadership.fencing_token());
                let ordered = async { while orders.recv().await != Some(resign.clone()) {} };
                let lost = select! {
                    () = leadership.lost() => true,
                    () = ordered => false,
                };
                if lost {
                    println!("{name} lost");
                } else {
                    leadership.resign();
                }
            }
            // Its server is out of reach for a while.
            Err(LockError::Unavailable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

//! A client of the release before there were chains, which wants the hot lock like all others. The network is not in
//! its way, and when its connection breaks it is another one.

use std::{path::PathBuf, time::Duration};

use redis::RedisResult;
use tokio::time::sleep;

use super::{
    HOT_KEY, TTL,
    history::{History, Kind, Mode, monotonic},
    lock_name,
};
use crate::earlier::Earlier;

/// Runs until it is dropped.
pub(super) async fn run(server: String, directory: PathBuf) {
    let history = History::open(&directory).expect("the history can be written");
    loop {
        // What it had ends with its lease.
        let _broken = turns(&server, &history).await;
        sleep(Duration::from_millis(20)).await;
    }
}

async fn turns(server: &str, history: &History) -> RedisResult<()> {
    let mut client = Earlier::connect(server, TTL).await?;
    loop {
        let asked = monotonic();
        let turn = client.take(&lock_name(HOT_KEY)).await?;
        let grant = history.grant(HOT_KEY, turn.fence, Mode::Alone);
        history.note_at(asked, Kind::Asked, grant);
        let mut kind = Kind::Enter;
        for _ in 0..fastrand::u32(1..4) {
            let at = monotonic();
            if at >= turn.until {
                break;
            }
            history.note_at(at, kind, grant);
            kind = Kind::Poll;
            sleep(Duration::from_millis(1)).await;
        }
        history.note(Kind::Done, grant);
        client.release().await?;
        sleep(Duration::from_millis(fastrand::u64(..50))).await;
    }
}

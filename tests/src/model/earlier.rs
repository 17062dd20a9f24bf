//! A client of the release before there were chains, which takes turns with all others.

use std::{ops::Range, path::PathBuf, time::Duration};

use tokio::time::sleep;

use super::{HOT, TTL, event::What, plan::Kind};
use crate::{
    earlier::Earlier,
    log::{Log, monotonic},
};

/// Does these operations, one after the other.
pub(super) async fn run(server: String, directory: PathBuf, operations: Range<usize>) {
    let log = Log::open(&directory).expect("the history can be written");
    let client = Earlier::connect(&server, TTL).await;
    let mut client = client.expect("the server is there");
    let key = format!("model-{HOT}");
    for number in operations {
        let note = |what: &What| log.note(monotonic(), format_args!("{number} {what}"));
        note(&What::Begin(Kind::Exclusive, vec![key.clone()]));
        let turn = client.take(&key).await.expect("the server is there");
        note(&What::Granted(turn.fence, turn.until, vec![key.clone()]));
        for _ in 0..3 {
            if monotonic() < turn.until {
                note(&What::Step(turn.until));
                sleep(Duration::from_millis(1)).await;
            }
        }
        note(&What::Done);
        note(&What::Release);
        let ours = client.release().await.expect("the server is there");
        note(&What::Released(ours));
    }
}

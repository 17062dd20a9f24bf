//! What ZooKeeper servers send, for `fuzz/`.

use super::protocol::connect::{logged_in, welcome};
use super::protocol::entry::{self, Entry};
use super::protocol::paths;
use super::protocol::reply::{Expected, Packet, Reply, read};
use super::transport::packets_of;

const EXPECTED: [Expected; 6] = [
    Expected::Created,
    Expected::Data,
    Expected::Children,
    Expected::Stat,
    Expected::Parts,
    Expected::Nothing,
];

/// Packets as they come in, each read as every answer that it may be.
pub fn packets(data: &[u8]) {
    for packet in packets_of(data) {
        drop(welcome(&packet));
        let _ = logged_in(&packet);
        if let Ok(Packet::Answer(answer)) = read(&packet) {
            for expected in EXPECTED {
                if let Ok(Ok(reply)) = answer.reply(expected) {
                    take(reply, answer.zxid);
                }
            }
        }
    }
}

fn take(reply: Reply, server_time: i64) {
    match reply {
        Reply::Data { data, stat } => {
            let holder = entry::holder(&data);
            let _ = entry::left(holder.remaining, stat, server_time);
            assert!(entry::is_asked(&entry::asked(&data)));
        }
        Reply::Children { names, .. } => {
            for name in &names {
                drop(paths::key(name));
                if let Some(entry) = Entry::parse(name) {
                    assert_eq!(Entry::parse(&entry.to_string()), Some(entry));
                }
            }
            let queue = Entry::queue(&names);
            assert!(entry::holders(&queue) <= queue.len());
        }
        _ => {}
    }
}

//! The connection to one of the servers: opens it, writes requests, reads answers,
//! connects again.

mod connect;
mod link;
mod logins;
mod wire;

pub(crate) use connect::{Dialer, Opened};
pub(crate) use link::{Link, LinkEvent};

/// The packets in the bytes of a server that then closes the connection.
#[cfg(fuzzing)]
pub(super) fn packets_of(bytes: &[u8]) -> Vec<Vec<u8>> {
    use std::task::{Context, Waker};

    let mut wire = wire::Wire::new(Box::new(std::io::Cursor::new(bytes.to_vec())));
    let mut packets = Vec::new();
    loop {
        let polled = wire.poll(&mut Context::from_waker(Waker::noop()));
        match wire.packet() {
            Ok(Some(packet)) => packets.push(packet),
            Ok(None) if polled.is_ok() => {}
            _ => return packets,
        }
    }
}

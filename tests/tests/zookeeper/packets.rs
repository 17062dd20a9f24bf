//! The packets of ZooKeeper's protocol, as a proxy sees them.

use std::sync::Mutex;

/// The numbers of requests.
pub(crate) const CREATE: i32 = 1;
pub(crate) const DELETE: i32 = 2;
pub(crate) const GET_DATA: i32 = 4;
pub(crate) const GET_CHILDREN: i32 = 12;
pub(crate) const MULTI: i32 = 14;

/// The number that events have in place of that of a request.
const EVENT: i32 = -1;

/// The bytes of one direction, cut into packets.
#[derive(Default)]
pub(crate) struct Packets(Mutex<Vec<u8>>);

/// One packet, without its length.
pub(crate) struct Packet(Vec<u8>);

impl Packets {
    /// Those that end with these bytes; the first one begins with the first bytes of all.
    pub(crate) fn read(&self, bytes: &[u8]) -> Vec<Packet> {
        let mut unread = self.0.lock().unwrap();
        unread.extend_from_slice(bytes);
        let mut packets = Vec::new();
        while let Some((length, rest)) = unread.split_first_chunk() {
            let length = u32::from_be_bytes(*length) as usize;
            let Some(packet) = rest.get(..length) else {
                break;
            };
            packets.push(Packet(packet.to_vec()));
            unread.drain(..4 + length);
        }
        packets
    }
}

impl Packet {
    /// What a request asks for.
    pub(crate) fn operation(&self) -> i32 {
        self.number(4)
    }

    /// Whether it tells of a node that was watched.
    pub(crate) fn is_event(&self) -> bool {
        self.number(0) == EVENT
    }

    fn number(&self, at: usize) -> i32 {
        let bytes = self.0.get(at..at + 4).unwrap_or(&[0; 4]);
        i32::from_be_bytes(bytes.try_into().unwrap())
    }
}

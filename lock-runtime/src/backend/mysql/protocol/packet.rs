//! Packets: three bytes of length, a number, and the payload. A payload of the greatest length goes on in the next packet.

use std::io;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

const HEADER: usize = 4;
/// The greatest length of one packet.
const LONGEST: usize = 0x00ff_ffff;
/// The longest payload of several packets.
const MOST: usize = 64 << 20;

/// Writes a payload, whose first packet has this number.
pub(crate) fn write(mut payload: &[u8], mut number: u8, out: &mut BytesMut) {
    loop {
        let (packet, rest) = payload.split_at(payload.len().min(LONGEST));
        let length = u32::try_from(packet.len()).unwrap_or(0);
        out.put_uint_le(length.into(), 3);
        out.put_u8(number);
        out.put_slice(packet);
        if packet.len() < LONGEST {
            return;
        }
        number = number.wrapping_add(1);
        payload = rest;
    }
}

/// The next payload that has come in whole, and the number of its last packet.
pub(crate) fn read(unread: &mut BytesMut) -> io::Result<Option<(u8, Bytes)>> {
    let (mut end, mut parts) = (0, 0);
    loop {
        let Some(header) = unread.get(end..end + HEADER) else {
            return Ok(None);
        };
        let length = length(header);
        end += HEADER + length;
        parts += 1;
        if end > MOST {
            return Err(strange());
        }
        if length < LONGEST {
            break;
        }
    }
    if unread.len() < end {
        return Ok(None);
    }
    let mut whole = unread.split_to(end);
    if parts == 1 {
        let number = whole[3];
        whole.advance(HEADER);
        return Ok(Some((number, whole.freeze())));
    }
    Ok(Some(joined(&mut whole, parts)))
}

fn joined(packets: &mut BytesMut, parts: usize) -> (u8, Bytes) {
    let (mut number, mut payload) = (0, BytesMut::new());
    for _ in 0..parts {
        let length = length(packets);
        number = packets[3];
        packets.advance(HEADER);
        payload.unsplit(packets.split_to(length));
    }
    (number, payload.freeze())
}

fn length(header: &[u8]) -> usize {
    usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16
}

/// For a packet that no server sends at that point.
pub(crate) fn strange() -> io::Error {
    io::Error::other("the server does not answer as MySQL does")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_of_any_length_reads_as_it_was_written() {
        for length in [0, 1, 300, LONGEST - 1, LONGEST, LONGEST + 5] {
            let payload = vec![7; length];
            let mut bytes = BytesMut::new();
            write(&payload, 3, &mut bytes);
            let whole = bytes.split();
            bytes.extend_from_slice(&whole[..whole.len() - 1]);
            assert!(read(&mut bytes).expect("a header").is_none(), "{length}");
            bytes.extend_from_slice(&whole[whole.len() - 1..]);
            let (number, read) = read(&mut bytes).expect("packets").expect("whole");
            let more = u8::try_from(length / LONGEST).expect("few");
            assert!(read == payload && number == 3 + more && bytes.is_empty());
        }
    }

    #[test]
    fn a_payload_without_end_is_given_up() {
        let mut bytes = BytesMut::new();
        for _ in 0..5 {
            write(&vec![7; LONGEST], 0, &mut bytes);
            bytes.truncate(bytes.len() - HEADER);
        }
        assert!(read(&mut bytes).is_err());
    }
}

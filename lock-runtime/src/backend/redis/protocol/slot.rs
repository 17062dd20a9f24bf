//! Slots: the part of a cluster that a key is in.

use crate::types::key::LockKey;

/// How many slots a cluster has.
pub(crate) const SLOTS: u16 = 16384;

/// The slot of all keys of a lock: each of them has its name in braces.
pub(crate) fn of_lock(key: &LockKey) -> u16 {
    let name = key.as_str();
    of_tag(name.split('}').next().unwrap_or(name))
}

/// A tag that puts keys into this slot.
pub(crate) fn tag_in(slot: u16) -> String {
    let tags = (0_u32..).map(|number| number.to_string());
    let mut inside = tags.filter(|tag| of_tag(tag) == slot);
    inside.next().unwrap_or_default()
}

fn of_tag(tag: &str) -> u16 {
    let crc = tag.bytes().fold(0, |crc: u16, byte| {
        let index = usize::from((crc >> 8) ^ u16::from(byte));
        (crc << 8) ^ CRC16[index]
    });
    crc % SLOTS
}

/// CRC-16/XMODEM, as the specification of Redis Cluster says.
const CRC16: [u16; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < table.len() {
        #[expect(clippy::cast_possible_truncation, reason = "it is below 256")]
        let mut crc = (index as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_server() {
        // As `CLUSTER KEYSLOT` answers.
        assert_eq!(of_tag("123456789"), 0x31c3);
        assert_eq!(of_lock(&LockKey::of("foo")), 12182);
        assert_eq!(of_lock(&LockKey::unchecked("foo}bar")), 12182);
    }

    #[test]
    fn every_slot_has_a_tag() {
        for slot in [0, 1, 8191, SLOTS - 1] {
            assert_eq!(of_tag(&tag_in(slot)), slot);
        }
    }
}

//! Bounds for what reads random bytes.

/// What a parser may need beside what it makes of the bytes.
const FIXED: u64 = 4 << 20;
/// The largest part of an answer that two bytes can stand for.
const FOR_EACH_BYTE: u64 = 1024;

/// Reads the bytes, and panics if that takes more memory than they can be worth: a length that is announced is not
/// believed before its bytes have come.
pub fn bounded(data: &[u8], read: impl FnOnce(&[u8])) {
    let used = allocation_counter::measure(|| read(data)).bytes_max;
    let most = FIXED + FOR_EACH_BYTE * data.len() as u64;
    assert!(used <= most, "{used} bytes of memory for {}", data.len());
}

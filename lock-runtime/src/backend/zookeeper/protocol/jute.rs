//! Jute, in which ZooKeeper writes values: big-endian numbers, and text after its length.

/// Writes one packet, which begins with its length.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new() -> Self {
        Self(vec![0; 4])
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.0.push(value.into());
    }

    pub(super) fn int(&mut self, number: i32) {
        self.0.extend(number.to_be_bytes());
    }

    pub(super) fn long(&mut self, number: i64) {
        self.0.extend(number.to_be_bytes());
    }

    pub(super) fn length(&mut self, length: usize) {
        self.int(i32::try_from(length).unwrap_or(i32::MAX));
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.extend(bytes);
    }

    pub(super) fn texts(&mut self, texts: &[String]) {
        self.length(texts.len());
        for text in texts {
            self.bytes(text.as_bytes());
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len() - 4).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&length.to_be_bytes());
        self.0
    }
}

/// Reads one packet, without its length.
pub(super) struct Reader<'a>(&'a [u8]);

/// A packet is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server has sent something that is no answer: it may not be ZooKeeper")]
pub(crate) struct Malformed;

impl<'a> Reader<'a> {
    pub(super) fn new(packet: &'a [u8]) -> Self {
        Self(packet)
    }

    pub(super) fn bool(&mut self) -> Result<bool, Malformed> {
        Ok(self.array::<1>()? != [0])
    }

    pub(super) fn int(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    pub(super) fn long(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_be_bytes)
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        // Nothing at all has a length of -1.
        let length = usize::try_from(self.int()?).unwrap_or(0);
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Result<String, Malformed> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| Malformed)
    }

    pub(super) fn texts(&mut self) -> Result<Vec<String>, Malformed> {
        (0..self.int()?).map(|_| self.text()).collect()
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut writer = Writer::new();
        writer.bool(true);
        writer.int(-2);
        writer.long(i64::MAX);
        writer.texts(&["a".to_owned(), "größe".to_owned()]);
        let packet = writer.finish();
        assert_eq!(packet[..4], [0, 0, 0, 33]);
        let mut reader = Reader::new(&packet[4..]);
        assert_eq!(reader.bool(), Ok(true));
        assert_eq!(reader.int(), Ok(-2));
        assert_eq!(reader.long(), Ok(i64::MAX));
        assert_eq!(reader.texts(), Ok(vec!["a".into(), "größe".into()]));
        assert_eq!(reader.int(), Err(Malformed));
    }

    #[test]
    fn a_length_is_not_believed() {
        assert_eq!(Reader::new(&[0, 0, 0, 9, 1]).bytes(), Err(Malformed));
        assert_eq!(Reader::new(&[255; 4]).bytes(), Ok(&[][..]));
        assert_eq!(Reader::new(&[127; 4]).texts(), Err(Malformed));
    }
}

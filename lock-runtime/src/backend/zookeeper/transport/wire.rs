//! Packets over an open connection, written and read while it is polled.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use crate::backend::transport::stream::{self, Stream};

/// The longest packet that a server sends, which holds the names of a million nodes.
const LONGEST: usize = 64 * 1024 * 1024;

pub(super) struct Wire {
    stream: Box<dyn Stream>,
    /// The bytes to write next.
    unwritten: VecDeque<u8>,
    /// The bytes read so far, from `start` on.
    read: Vec<u8>,
    start: usize,
}

impl Wire {
    pub(super) fn new(stream: Box<dyn Stream>) -> Self {
        Self {
            stream,
            unwritten: VecDeque::new(),
            read: Vec::new(),
            start: 0,
        }
    }

    /// Writes a packet with the next poll.
    pub(super) fn send(&mut self, packet: &[u8]) {
        self.unwritten.extend(packet);
    }

    /// Writes what was sent and reads what has come in.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.write(cx)?;
        self.read(cx)
    }

    fn write(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while !self.unwritten.is_empty() {
            match stream::write(&mut *self.stream, cx, self.unwritten.as_slices().0)? {
                0 => return Ok(()),
                count => drop(self.unwritten.drain(..count)),
            }
        }
        stream::flush(&mut *self.stream, cx)
    }

    /// Reads nothing more before the packets that are there have been taken.
    fn read(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self
            .length()
            .is_some_and(|it| it > LONGEST || self.is_complete(it))
        {
            return Ok(());
        }
        self.read.drain(..self.start);
        self.start = 0;
        stream::read(&mut *self.stream, cx, |bytes| self.read.extend(bytes))
    }

    /// Waits for the next packet, and writes what was sent.
    pub(super) async fn next_packet(&mut self) -> io::Result<Vec<u8>> {
        poll_fn(|cx| {
            let polled = self.poll(cx);
            match self.packet()? {
                Some(packet) => Poll::Ready(Ok(packet)),
                None => polled.map_or_else(|error| Poll::Ready(Err(error)), |()| Poll::Pending),
            }
        })
        .await
    }

    /// The next packet that has come in, without its length.
    pub(super) fn packet(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(length) = self.length() else {
            return Ok(None);
        };
        if length > LONGEST {
            return Err(io::Error::other(
                "the server does not answer as ZooKeeper does",
            ));
        }
        if !self.is_complete(length) {
            return Ok(None);
        }
        let begin = self.start + 4;
        self.start = begin + length;
        Ok(Some(self.read[begin..self.start].to_vec()))
    }

    /// The length of the next packet, once it is known.
    fn length(&self) -> Option<usize> {
        let length = self.read[self.start..].first_chunk()?;
        Some(u32::from_be_bytes(*length) as usize)
    }

    /// Whether the next packet, which has this length, has come in.
    fn is_complete(&self, length: usize) -> bool {
        self.read.len() - self.start >= 4 + length
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::io::duplex;

    use super::*;

    #[test]
    fn packets_that_were_taken_leave_no_bytes() {
        let (ours, mut theirs) = duplex(100);
        let mut wire = Wire::new(Box::new(ours));
        let mut say = |bytes: &[u8]| {
            let cx = &mut Context::from_waker(Waker::noop());
            stream::write(&mut theirs, cx, bytes).expect("room")
        };
        say(&[0, 0, 0, 1, 7, 0, 0, 0, 2, 8]);
        let cx = &mut Context::from_waker(Waker::noop());
        wire.poll(cx).expect("a connection");
        // Before the first packet is taken nothing more is read.
        say(&[9]);
        wire.poll(cx).expect("a connection");
        assert_eq!(wire.read.len(), 10);
        assert_eq!(wire.packet().expect("a packet"), Some(vec![7]));
        assert_eq!(wire.packet().expect("a part"), None);
        wire.poll(cx).expect("a connection");
        assert_eq!((wire.read.len(), wire.start), (6, 0));
        assert_eq!(wire.packet().expect("a packet"), Some(vec![8, 9]));
    }
}

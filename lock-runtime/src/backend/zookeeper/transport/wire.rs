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

    fn read(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
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
        let rest = &self.read[self.start..];
        let Some((length, rest)) = rest.split_first_chunk() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > LONGEST {
            return Err(io::Error::other(
                "the server does not answer as ZooKeeper does",
            ));
        }
        let Some(packet) = rest.get(..length) else {
            return Ok(None);
        };
        let packet = packet.to_vec();
        self.start += 4 + length;
        if self.start == self.read.len() {
            self.read.clear();
            self.start = 0;
        }
        Ok(Some(packet))
    }
}

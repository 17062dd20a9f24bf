//! Packets over an open connection, written and read while it is polled.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead as _, ReadBuf};
use tokio::net::TcpStream;

use crate::backend::mysql::protocol::answer::{Answer, Gathering};
use crate::backend::mysql::protocol::packet::{self, strange};
use crate::backend::transport::stream::{self, Stream};

/// The command that carries out statements.
const QUERY: u8 = 3;
/// The command that ends the connection.
const QUIT: u8 = 1;

pub(super) struct Wire {
    stream: Box<dyn Stream>,
    /// The bytes to write next.
    unwritten: BytesMut,
    unread: BytesMut,
    /// Why nothing more comes in.
    ended: Option<io::Error>,
}

impl Wire {
    pub(super) fn new(stream: Box<dyn Stream>) -> Self {
        Self {
            stream,
            unwritten: BytesMut::new(),
            unread: BytesMut::new(),
            ended: None,
        }
    }

    /// Sends a packet of the login with the next poll.
    pub(super) fn send(&mut self, number: u8, payload: &[u8]) {
        packet::write(payload, number, &mut self.unwritten);
    }

    /// Sends statements with the next poll. They are carried out one after the other, up to the first error.
    pub(super) fn query(&mut self, text: &str) {
        self.send(0, &[&[QUERY], text.as_bytes()].concat());
    }

    /// Says good-bye with the next poll.
    pub(super) fn quit(&mut self) {
        self.send(0, &[QUIT]);
    }

    /// Writes what was sent and reads what has come in.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) {
        if self.ended.is_none() {
            // Answers that have arrived count, even if nothing can be written any more.
            let written = self.write(cx);
            self.ended = self.read(cx).and(written).err();
        }
    }

    fn write(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while !self.unwritten.is_empty() {
            match stream::write(&mut *self.stream, cx, &self.unwritten)? {
                0 => return Ok(()),
                count => self.unwritten.advance(count),
            }
        }
        stream::flush(&mut *self.stream, cx)
    }

    fn read(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        stream::read(&mut *self.stream, cx, |bytes| {
            self.unread.extend_from_slice(bytes);
        })
    }

    /// The next payload that has come in, and the number of its packet; an error after the last one.
    pub(super) fn payload(&mut self) -> io::Result<Option<(u8, Bytes)>> {
        match packet::read(&mut self.unread)? {
            Some(read) => Ok(Some(read)),
            None => self.ended.take().map_or(Ok(None), Err),
        }
    }

    /// Writes what was sent, and waits for the next payload.
    pub(super) async fn next(&mut self) -> io::Result<(u8, Bytes)> {
        poll_fn(|cx| {
            self.poll(cx);
            match self.payload() {
                Ok(Some(read)) => Poll::Ready(Ok(read)),
                Ok(None) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            }
        })
        .await
    }

    /// Sends a statement, and waits for its answer.
    pub(super) async fn ask(&mut self, text: &str) -> io::Result<Answer> {
        self.ask_as(text, false).await
    }

    /// Sends statements together, and waits until all are carried out; the first error ends them.
    pub(super) async fn ask_all(&mut self, statements: &[String]) -> io::Result<Answer> {
        // A statement may end in a comment.
        self.query(&statements.join("\n;\n"));
        let mut gathering = Gathering::default();
        let mut left = statements.len();
        while left > 0 {
            let (_, payload) = self.next().await?;
            match gathering.take(&payload, false)? {
                Some(Ok(_)) => left -= 1,
                Some(refused) => return Ok(refused),
                None => {}
            }
        }
        Ok(Ok(Vec::new()))
    }

    /// Calls a procedure, and waits for its answer.
    pub(super) async fn call(&mut self, text: &str) -> io::Result<Answer> {
        self.ask_as(text, true).await
    }

    async fn ask_as(&mut self, text: &str, is_procedure: bool) -> io::Result<Answer> {
        self.query(text);
        let mut gathering = Gathering::default();
        loop {
            let (_, payload) = self.next().await?;
            if let Some(answer) = gathering.take(&payload, is_procedure)? {
                return Ok(answer);
            }
        }
    }
}

/// Reads the first packet, and not a byte more: what follows may be encrypted.
pub(super) async fn first(socket: &mut TcpStream) -> io::Result<Bytes> {
    let mut header = [0; 4];
    exactly(socket, &mut header).await?;
    let length = usize::from(header[0]) | usize::from(header[1]) << 8;
    if header[2] > 0 {
        return Err(strange());
    }
    let mut payload = vec![0; length];
    exactly(socket, &mut payload).await?;
    Ok(payload.into())
}

async fn exactly(socket: &mut TcpStream, bytes: &mut [u8]) -> io::Result<()> {
    let mut buffer = ReadBuf::new(bytes);
    while buffer.remaining() > 0 {
        let before = buffer.remaining();
        poll_fn(|cx| Pin::new(&mut *socket).poll_read(cx, &mut buffer)).await?;
        if buffer.remaining() == before {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

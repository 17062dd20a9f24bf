//! Messages over an open connection, written and read while it is polled.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use bytes::{Buf as _, BytesMut};
use postgres_protocol::message::backend::{Header, Message};

use crate::backend::postgres::protocol::answer::{Answer, Gathering, strange};
use crate::backend::postgres::protocol::call::{Call, Known};
use crate::backend::postgres::protocol::mark::Mark;
use crate::backend::sql::trouble::Refused;
use crate::backend::transport::stream::{self, Stream};

/// The longest message that a server sends.
const LONGEST: i32 = 64 * 1024 * 1024;

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

    /// The buffer for messages that the next poll writes.
    pub(super) fn out(&mut self) -> &mut BytesMut {
        &mut self.unwritten
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

    /// The next message that has come in; an error after the last one.
    pub(super) fn message(&mut self) -> io::Result<Option<Message>> {
        if let Some(header) = Header::parse(&self.unread).map_err(|_| strange())? {
            if !header.tag().is_ascii_alphanumeric() || header.len() > LONGEST {
                return Err(strange());
            }
            // It makes room for a message before that has come, however long it claims to be.
            let length = usize::try_from(header.len()).unwrap_or(usize::MAX);
            if self.unread.len() > length
                && let Some(message) = Message::parse(&mut self.unread).map_err(|_| strange())?
            {
                return Ok(Some(message));
            }
        }
        match self.ended.take() {
            Some(error) => Err(error),
            None => Ok(None),
        }
    }

    /// Writes what was sent, and waits for the next message.
    pub(super) async fn next(&mut self) -> io::Result<Message> {
        poll_fn(|cx| {
            self.poll(cx);
            match self.message() {
                Ok(Some(message)) => Poll::Ready(Ok(message)),
                Ok(None) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            }
        })
        .await
    }

    /// Sends a call, and waits for its answer.
    pub(super) async fn ask(&mut self, call: Call) -> io::Result<Answer> {
        let mark = Mark::new();
        call.marked(mark).write(Known::Never, &mut self.unwritten);
        let answer = self.answer().await?;
        mark.demand(&answer)?;
        Ok(answer)
    }

    /// Waits for the end of the next answer.
    pub(super) async fn answer(&mut self) -> io::Result<Answer> {
        let mut gathering = Gathering::default();
        loop {
            let message = self.next().await?;
            if is_aside(&message) {
                continue;
            }
            if let Some(answer) = gathering.take(&message)? {
                return Ok(answer);
            }
            if let Some(error) = gathering.fatal() {
                return Err(io::Error::other(Refused::from(error)));
            }
        }
    }
}

/// Whether a message belongs to no answer and can be ignored.
pub(super) fn is_aside(message: &Message) -> bool {
    matches!(
        message,
        Message::ParameterStatus(_) | Message::NotificationResponse(_)
    )
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::task::Waker;

    use super::*;

    #[test]
    fn a_length_alone_takes_no_memory() {
        let bytes = [b'D', 3, 255, 255, 255, 0, 0];
        let mut wire = Wire::new(Box::new(Cursor::new(bytes.to_vec())));
        wire.poll(&mut Context::from_waker(Waker::noop()));
        assert!(wire.message().is_err(), "the server has closed it");
        assert!(wire.unread.capacity() < 1024, "{}", wire.unread.capacity());
    }
}

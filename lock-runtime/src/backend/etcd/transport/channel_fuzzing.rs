//! Bytes of a member, for `fuzz/`: as messages, and as an HTTP/2 connection.

use std::future::Future as _;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use prost::Message;
use prost::bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Channel, Incoming, State};
use crate::backend::etcd::protocol::messages::{LeaseRequest, WatchResponse};

/// How often a connection is polled: each time it takes what has come in.
const POLLS: usize = 8;

/// The messages that are understood, each behind its length.
pub(crate) fn messages_of<R: Message + Default>(bytes: &[u8]) -> Vec<R> {
    let mut incoming = Incoming {
        state: State::Ended(Ok(())),
        read: BytesMut::from(bytes),
    };
    std::iter::from_fn(|| incoming.next_message())
        .flatten()
        .collect()
}

/// The bytes of a member that accepts a connection and one request.
pub fn http2(data: &[u8]) {
    let cx = &mut Context::from_waker(Waker::noop());
    let member = Member {
        unread: data.to_vec(),
        read: 0,
    };
    let mut opening = pin!(Channel::open(Box::new(member), "http://member".to_owned()));
    let Poll::Ready(Ok(mut channel)) = opening.as_mut().poll(cx) else {
        return;
    };
    let mut incoming = channel.call("/some", &LeaseRequest { id: 7 });
    for _ in 0..POLLS {
        let ended = channel.poll(cx).is_ready();
        let _ = channel.has_room(cx);
        if incoming.poll_next::<WatchResponse>(cx).is_ready() && ended {
            return;
        }
    }
}

/// Says what it has to say and then nothing, and takes everything.
struct Member {
    unread: Vec<u8>,
    read: usize,
}

impl AsyncRead for Member {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = &self.unread[self.read..];
        let count = rest.len().min(buffer.remaining());
        if count == 0 {
            return Poll::Pending;
        }
        buffer.put_slice(&rest[..count]);
        self.read += count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Member {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

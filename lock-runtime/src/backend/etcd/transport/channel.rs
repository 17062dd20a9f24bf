//! gRPC over one HTTP/2 connection, polled by its owner.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use h2::client::{self, Connection, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request};
use percent_encoding::percent_decode;
use prost::Message;
use prost::bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use crate::backend::etcd::protocol::trouble::Trouble;
use crate::backend::transport::stream::Stream;

/// A flag and the length of what follows.
const PREFIX: usize = 5;
/// How much a member may send before it is read.
const WINDOW: u32 = 4 << 20;
/// As many as a member admits: it has no limit of its own.
const STREAMS: usize = 1 << 20;
/// The most that is read of an answer; thousands of entries take a megabyte.
const MOST: usize = 16 << 20;

/// An open connection.
pub(crate) struct Channel {
    sender: SendRequest<Bytes>,
    connection: Connection<Box<dyn Stream>, Bytes>,
    scheme_and_host: String,
    /// Shows who asks.
    pub(crate) token: Option<HeaderValue>,
}

impl Channel {
    pub(crate) async fn open(
        stream: Box<dyn Stream>,
        scheme_and_host: String,
    ) -> Result<Self, h2::Error> {
        let (sender, connection) = client::Builder::new()
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .initial_max_send_streams(STREAMS)
            .enable_push(false)
            .handshake(stream)
            .await?;
        Ok(Self {
            sender,
            connection,
            scheme_and_host,
            token: None,
        })
    }

    /// Writes what was sent and reads what has come in; ready when the connection has
    /// ended.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Trouble> {
        let ended = ready!(Pin::new(&mut self.connection).poll(cx));
        Poll::Ready(match ended {
            Ok(()) => Trouble::unknown("the member has closed the connection"),
            Err(error) => of_http(&error),
        })
    }

    /// Whether another request can be sent; wakes when one can. A member, or a proxy
    /// before it, may limit how many are in flight.
    pub(crate) fn has_room(&mut self, cx: &mut Context<'_>) -> bool {
        matches!(self.sender.poll_ready(cx), Poll::Ready(Ok(())))
    }

    /// Whether it accepts no further request: the member will end it once those in flight are over, and a watch is
    /// in flight for ever.
    pub(crate) fn is_retired(&mut self, cx: &mut Context<'_>) -> bool {
        matches!(self.sender.poll_ready(cx), Poll::Ready(Err(_)))
    }

    /// Sends a request with one message, if the connection [has room](Self::has_room) for it.
    pub(crate) fn call(&mut self, path: &str, message: &impl Message) -> Incoming {
        match self.request(path) {
            Ok((mut sending, incoming)) => match sending.send_data(frame(message), true) {
                Ok(()) => incoming,
                Err(error) => Incoming::failed(&error),
            },
            Err(error) => Incoming::failed(&error),
        }
    }

    /// The answer to a request, while nobody else polls the connection.
    pub(crate) async fn ask<R: Message + Default>(
        &mut self,
        path: &str,
        message: &impl Message,
    ) -> Result<R, Trouble> {
        let mut incoming = self.call(path, message);
        std::future::poll_fn(|cx| {
            let ended = self.poll(cx);
            match (incoming.poll_answer(cx), ended) {
                (Poll::Ready(answer), _) => Poll::Ready(answer),
                (Poll::Pending, Poll::Ready(trouble)) => Poll::Ready(Err(trouble)),
                (Poll::Pending, Poll::Pending) => Poll::Pending,
            }
        })
        .await
    }

    /// Opens a request to which messages can be added.
    pub(crate) fn request(
        &mut self,
        path: &str,
    ) -> Result<(SendStream<Bytes>, Incoming), h2::Error> {
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        let uri = format!("{}{path}", self.scheme_and_host);
        *request.uri_mut() = uri.parse().map_err(|_| h2::Reason::INTERNAL_ERROR)?;
        let headers = request.headers_mut();
        headers.insert("te", HeaderValue::from_static("trailers"));
        let kind = HeaderValue::from_static("application/grpc");
        headers.insert("content-type", kind);
        // A member without a leader says so.
        let has_leader = HeaderName::from_static("hasleader");
        headers.insert(has_leader, HeaderValue::from_static("true"));
        if let Some(token) = &self.token {
            headers.insert("token", token.clone());
        }
        let (response, sending) = self.sender.send_request(request, false)?;
        Ok((sending, Incoming::new(response)))
    }
}

/// A message as it is sent.
pub(crate) fn frame(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut frame = BytesMut::with_capacity(PREFIX + length);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // The buffer is large enough for it.
    let _ = message.encode(&mut frame);
    frame.freeze()
}

/// The answer of a member to a request.
pub(crate) struct Incoming {
    state: State,
    read: BytesMut,
}

enum State {
    Head(ResponseFuture),
    Body(RecvStream),
    Ended(Result<(), Trouble>),
}

impl Incoming {
    fn new(response: ResponseFuture) -> Self {
        Self {
            state: State::Head(response),
            read: BytesMut::new(),
        }
    }

    fn failed(error: &h2::Error) -> Self {
        Self {
            state: State::Ended(Err(of_http(error))),
            read: BytesMut::new(),
        }
    }

    /// The one message of an answer, once it is complete.
    pub(crate) fn poll_answer<R: Message + Default>(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<R, Trouble>> {
        ready!(self.poll_end(cx))?;
        let message = self.next_message();
        Poll::Ready(message.unwrap_or_else(|| Err(Trouble::unknown("the answer is empty"))))
    }

    /// The next message of a stream.
    pub(crate) fn poll_next<R: Message + Default>(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<R, Trouble>> {
        let end = self.poll_end(cx);
        if let Some(message) = self.next_message() {
            return Poll::Ready(message);
        }
        match ready!(end) {
            Ok(()) => Poll::Ready(Err(Trouble::unknown("the stream has ended"))),
            Err(trouble) => Poll::Ready(Err(trouble)),
        }
    }

    fn next_message<R: Message + Default>(&mut self) -> Option<Result<R, Trouble>> {
        let length = self.read.get(1..PREFIX)?.try_into().ok()?;
        let end = PREFIX + usize::try_from(u32::from_be_bytes(length)).ok()?;
        if self.read.len() < end {
            return None;
        }
        let mut message = self.read.split_to(end);
        message.advance(PREFIX);
        Some(R::decode(message).map_err(|error| Trouble::unknown(error.to_string())))
    }

    /// The length of the message that is being read, as far as it is known.
    fn expected(&self) -> usize {
        let length = self.read.get(1..PREFIX).and_then(|it| it.try_into().ok());
        let length = length.map_or(0, u32::from_be_bytes);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        length.max(self.read.len())
    }

    /// Reads what has come in; ready at the end, with the status.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Trouble>> {
        loop {
            let next = match &mut self.state {
                State::Head(response) => match ready!(pin!(response).poll(cx)) {
                    Ok(response) => match status(response.headers()) {
                        Some(status) => State::Ended(status),
                        None => State::Body(response.into_body()),
                    },
                    Err(error) => State::Ended(Err(of_http(&error))),
                },
                State::Body(body) => match ready!(body.poll_data(cx)) {
                    Some(Ok(data)) => {
                        let _ = body.flow_control().release_capacity(data.len());
                        self.read.extend_from_slice(&data);
                        if self.expected() <= MOST {
                            continue;
                        }
                        self.read.clear();
                        State::Ended(Err(Trouble::unknown(format!(
                            "the answer is larger than {} MB",
                            MOST >> 20
                        ))))
                    }
                    Some(Err(error)) => State::Ended(Err(of_http(&error))),
                    None => State::Ended(match ready!(body.poll_trailers(cx)) {
                        Ok(trailers) => trailers
                            .and_then(|trailers| status(&trailers))
                            .unwrap_or_else(|| Err(Trouble::unknown("the answer is cut off"))),
                        Err(error) => Err(of_http(&error)),
                    }),
                },
                State::Ended(result) => return Poll::Ready(result.clone()),
            };
            self.state = next;
        }
    }
}

/// Why a request has failed; one that was refused by itself was not looked at.
fn of_http(error: &h2::Error) -> Trouble {
    let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
    if refused {
        Trouble::said("the member takes no more requests for now")
    } else {
        Trouble::unknown(error.to_string())
    }
}

/// How a call has ended, if the headers say so.
fn status(headers: &HeaderMap) -> Option<Result<(), Trouble>> {
    let code = headers.get("grpc-status")?;
    let code = code.to_str().ok().and_then(|code| code.parse().ok());
    Some(match code {
        Some(0) => Ok(()),
        code => {
            let message = headers.get("grpc-message").map(HeaderValue::as_bytes);
            let message = percent_decode(message.unwrap_or_default()).decode_utf8_lossy();
            // Two is unknown.
            Err(Trouble::of_status(code.unwrap_or(2), &message))
        }
    })
}

#[cfg(fuzzing)]
#[path = "channel_fuzzing.rs"]
pub(super) mod fuzzing;

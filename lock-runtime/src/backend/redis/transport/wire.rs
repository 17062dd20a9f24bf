//! An open connection: takes commands, and writes and reads while it is polled.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use redis::aio::MultiplexedConnection;
use redis::{Pipeline, RedisResult, Value};

use crate::backend::redis::opening::Io;
use crate::base::last_waker::LastWaker;

/// The answers to one pipeline. They arrive while the wire is polled, and wake nobody:
/// the link looks for them afterwards.
pub(crate) type Answers = Pin<Box<dyn Future<Output = RedisResult<Vec<Value>>> + Send>>;

pub(crate) struct Wire {
    connection: MultiplexedConnection,
    /// `None` when it has ended.
    io: Option<Io>,
    ear: Arc<Ear>,
    waker: Waker,
}

impl Wire {
    pub(crate) fn new(connection: MultiplexedConnection, io: Io) -> Self {
        let ear = Arc::new(Ear::default());
        Self {
            connection,
            io: Some(io),
            waker: Waker::from(Arc::clone(&ear)),
            ear,
        }
    }

    /// Writes what was sent and reads what has come in.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) {
        let Some(io) = &mut self.io else { return };
        self.ear.driver.set(cx.waker());
        let polled = io.as_mut().poll(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            self.io = None;
        }
    }

    /// Sends a pipeline with the next poll; the first `aside` answers are left out.
    pub(crate) fn send(&self, pipeline: Pipeline, aside: usize) -> Answers {
        let mut connection = self.connection.clone();
        let mut answers: Answers = Box::pin(async move {
            let count = pipeline.len() - aside;
            connection
                .send_packed_commands(&pipeline, aside, count)
                .await
        });
        // The first poll puts the pipeline into the connection's buffer.
        self.ear.deaf.store(true, Ordering::SeqCst);
        let polled = answers
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        self.ear.deaf.store(false, Ordering::SeqCst);
        match polled {
            Poll::Ready(result) => Box::pin(ready(result)),
            Poll::Pending => answers,
        }
    }

    pub(crate) fn answered(answers: &mut Answers) -> Option<RedisResult<Vec<Value>>> {
        match answers
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }
}

/// Forwards wake-ups of the socket, but not those of our own sending: after that the
/// wire is polled anyway.
#[derive(Default)]
struct Ear {
    deaf: AtomicBool,
    driver: LastWaker,
}

impl Wake for Ear {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.deaf.load(Ordering::SeqCst) {
            self.driver.wake();
        }
    }
}

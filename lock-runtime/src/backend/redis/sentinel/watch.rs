//! Listens to the sentinels, and hears of a failover as soon as one of them does.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{PushInfo, RedisResult};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::question::{Master, master};
use super::sentinels::Sentinels;
use crate::backend::transport::backoff::Backoff;

/// How often a sentinel is asked even if it says nothing: its connection may be dead, or
/// the user may have no right to listen.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// A connection to each sentinel. They end when it is dropped.
pub(crate) struct Watch {
    _listeners: JoinSet<()>,
    answered: mpsc::Receiver<()>,
    sentinels: Arc<Sentinels>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch({:?})", self.sentinels.master())
    }
}

impl Watch {
    pub(crate) fn new(sentinels: &Arc<Sentinels>) -> Self {
        // One is enough, however many have answered since the last poll.
        let (sender, answered) = mpsc::channel(1);
        let mut listeners = JoinSet::new();
        for number in 0..sentinels.all.len() {
            let (sentinels, sender) = (Arc::clone(sentinels), sender.clone());
            listeners.spawn(async move { follow(&sentinels, number, &sender).await });
        }
        Self {
            _listeners: listeners,
            answered,
            sentinels: Arc::clone(sentinels),
        }
    }

    /// The master, each time a sentinel has answered, also if it has said nothing new.
    pub(crate) fn poll_master(&mut self, cx: &mut Context<'_>) -> Poll<Master> {
        while let Poll::Ready(Some(())) = self.answered.poll_recv(cx) {
            if let Some(master) = self.sentinels.master() {
                return Poll::Ready(master);
            }
        }
        Poll::Pending
    }
}

/// Listens to a sentinel, and connects again when it is back: it is asked by nobody meanwhile.
async fn follow(sentinels: &Sentinels, number: usize, sender: &mpsc::Sender<()>) {
    let mut backoff = Backoff::new(1);
    loop {
        let (pushes, messages) = mpsc::unbounded_channel();
        let opening = sentinels.all[number].open(pushes);
        let pause = if let Ok((connection, io)) = in_time(sentinels, opening).await {
            let opened = Instant::now();
            let said = |master| {
                sentinels.said(number, master);
                let _ = sender.try_send(());
                backoff.worked();
            };
            tokio::select! {
                _ = listen(sentinels, connection, messages, said) => {}
                () = io => {}
            }
            backoff.broken(opened.elapsed())
        } else {
            backoff.failed()
        };
        sleep(pause).await;
    }
}

/// Listens to the master that a sentinel names, now and after every failover, while the
/// connection lasts.
async fn listen(
    sentinels: &Sentinels,
    mut connection: MultiplexedConnection,
    mut messages: mpsc::UnboundedReceiver<PushInfo>,
    mut said: impl FnMut(Option<Master>),
) -> RedisResult<()> {
    // If the subscription is forbidden, the questions find out about failovers.
    let _ = in_time(sentinels, connection.subscribe("+switch-master")).await;
    loop {
        let asked = master(&mut connection, &sentinels.service);
        said(in_time(sentinels, asked).await?);
        let _ = timeout(ASK_EVERY, messages.recv()).await;
    }
}

async fn in_time<T>(
    sentinels: &Sentinels,
    future: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    let silent = |_| Err(io::Error::from(io::ErrorKind::TimedOut).into());
    timeout(sentinels.timeout, future)
        .await
        .unwrap_or_else(silent)
}

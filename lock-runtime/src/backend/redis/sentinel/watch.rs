//! Listens to the sentinels, and hears of a failover as soon as one of them does.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use redis::RedisResult;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::question::{Master, closed, master};
use super::sentinels::Sentinels;

/// How often a sentinel is asked even if it says nothing: its connection may be dead, or
/// the user may have no right to listen.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// The pause before a sentinel is connected to again.
const PAUSE: Duration = Duration::from_millis(500);

/// A connection to each sentinel. They end when it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    _listeners: JoinSet<()>,
    named: mpsc::UnboundedReceiver<Master>,
    latest: Option<Master>,
}

impl Watch {
    pub(crate) fn new(sentinels: &Arc<Sentinels>) -> Self {
        let (sender, named) = mpsc::unbounded_channel();
        let mut listeners = JoinSet::new();
        for number in 0..sentinels.all.len() {
            let (sentinels, sender) = (Arc::clone(sentinels), sender.clone());
            listeners.spawn(async move {
                loop {
                    // A sentinel that is gone is asked by nobody until it is back.
                    let _ = listen(&sentinels, number, &sender).await;
                    sleep(PAUSE).await;
                }
            });
        }
        Self {
            _listeners: listeners,
            named,
            latest: None,
        }
    }

    /// The next master of whom one of them was the first to tell.
    pub(crate) fn poll_news(&mut self, cx: &mut Context<'_>) -> Poll<Master> {
        loop {
            let Poll::Ready(Some(master)) = self.named.poll_recv(cx) else {
                return Poll::Pending;
            };
            // Others repeat it, or have not heard of it yet.
            if self
                .latest
                .as_ref()
                .is_none_or(|it| it.epoch < master.epoch)
            {
                self.latest = Some(master.clone());
                return Poll::Ready(master);
            }
        }
    }
}

/// Tells whom a sentinel names as the master, now and after every failover, while the
/// connection lasts.
async fn listen(
    sentinels: &Sentinels,
    number: usize,
    sender: &mpsc::UnboundedSender<Master>,
) -> RedisResult<()> {
    let (pushes, mut messages) = mpsc::unbounded_channel();
    let opening = sentinels.all[number].open(pushes);
    let (mut connection, io) = in_time(sentinels, opening).await?;
    let listening = async {
        // Where that is forbidden, the questions find it out.
        let _ = in_time(sentinels, connection.subscribe("+switch-master")).await;
        loop {
            let asked = master(&mut connection, &sentinels.service);
            if let Some(master) = in_time(sentinels, asked).await? {
                let _ = sender.send(master);
            }
            let _ = timeout(ASK_EVERY, messages.recv()).await;
        }
    };
    tokio::select! {
        ended = listening => ended,
        () = io => Err(closed()),
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

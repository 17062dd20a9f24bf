//! Lets others go first, on any executor.

use std::future::poll_fn;
use std::mem::replace;
use std::task::Poll;

/// Ready when its task is polled again, behind those that have been woken before.
pub(crate) async fn give_way() {
    let mut gave_way = false;
    poll_fn(|cx| {
        if replace(&mut gave_way, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

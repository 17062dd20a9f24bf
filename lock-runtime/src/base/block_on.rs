//! Waits for a future on a thread without a runtime.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks the thread until the future is ready.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            // A wake-up that came before lets it pass at once; others may unpark the thread too.
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn a_wake_up_from_another_thread_ends_the_wait() {
        let (sender, answer) = oneshot::channel();
        let sending = thread::spawn(move || sender.send(7));
        assert_eq!(block_on(answer), Ok(7));
        sending.join().expect("a thread").expect("a receiver");
    }
}

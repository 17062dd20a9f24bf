//! What breaks a connection at a certain message.

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use super::messages::Message;
use crate::Verdict;

/// Looks at what goes one way; it may be armed for one message.
#[derive(Debug, Default)]
pub(super) struct Trap {
    armed: Mutex<Option<(Message, Verdict)>>,
    sprung: AtomicUsize,
}

impl Trap {
    /// The next message of this sort meets with that.
    pub(super) fn arm(&self, message: Message, verdict: Verdict) {
        *self.armed.lock().expect("no panic") = Some((message, verdict));
    }

    /// Whether it is not armed any more, since the message came; it is not armed now.
    pub(super) fn disarm(&self) -> bool {
        self.armed.lock().expect("no panic").take().is_none()
    }

    /// How often a message has come.
    pub(super) fn sprung(&self) -> usize {
        self.sprung.load(Ordering::Relaxed)
    }

    pub(super) fn judge(&self, bytes: &[u8]) -> Verdict {
        let mut armed = self.armed.lock().expect("no panic");
        match &*armed {
            Some((message, verdict)) if message.is_in(bytes) => {
                let verdict = *verdict;
                *armed = None;
                self.sprung.fetch_add(1, Ordering::Relaxed);
                verdict
            }
            _ => Verdict::Pass,
        }
    }
}

//! One connection to a server: opened, prepared for calls, and polled.

pub(crate) mod dialer;
mod install;
pub(crate) mod link;
mod login;
mod open;
mod prepare;
pub(crate) mod server;
mod wire;

/// The answers in the bytes of a server that then closes the connection.
#[cfg(fuzzing)]
pub(super) fn answers_of(bytes: &[u8]) -> Vec<super::protocol::answer::Answer> {
    use super::protocol::{answer::Gathering, packet};

    let mut unread = bytes::BytesMut::from(bytes);
    let (mut gathering, mut answers) = (Gathering::default(), Vec::new());
    while let Ok(Some((_, payload))) = packet::read(&mut unread) {
        match gathering.take(&payload, true) {
            Ok(answer) => answers.extend(answer),
            Err(_) => break,
        }
    }
    answers
}

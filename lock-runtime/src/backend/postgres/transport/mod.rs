//! One connection to a server: opened, prepared for calls, and polled.

pub(crate) mod dialer;
mod install;
pub(crate) mod link;
mod login;
mod open;
mod prepare;
pub(crate) mod server;
mod standbys;
#[cfg(test)]
mod tests;
mod wire;

/// The answers in the bytes of a server that then closes the connection.
#[cfg(fuzzing)]
pub(super) fn answers_of(bytes: &[u8]) -> Vec<super::protocol::answer::Answer> {
    use std::task::{Context, Waker};

    use super::protocol::answer::Gathering;
    use super::protocol::notification::Notification;
    use postgres_protocol::message::backend::Message;

    let mut wire = wire::Wire::new(Box::new(std::io::Cursor::new(bytes.to_vec())));
    wire.poll(&mut Context::from_waker(Waker::noop()));
    let (mut gathering, mut answers) = (Gathering::default(), Vec::new());
    while let Ok(Some(message)) = wire.message() {
        if let Message::NotificationResponse(body) = &message {
            drop(Notification::read(body));
            continue;
        }
        match gathering.take(&message) {
            Ok(answer) => answers.extend(answer),
            Err(_) => break,
        }
        if gathering.fatal().is_some() {
            break;
        }
    }
    answers
}

//! A message that another session has sent with `NOTIFY`.

use std::io;

use postgres_protocol::message::backend::NotificationResponseBody;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notification {
    pub(crate) channel: Box<str>,
    pub(crate) payload: Box<str>,
}

impl Notification {
    pub(crate) fn read(body: &NotificationResponseBody) -> io::Result<Self> {
        Ok(Self {
            channel: body.channel()?.into(),
            payload: body.message()?.into(),
        })
    }
}

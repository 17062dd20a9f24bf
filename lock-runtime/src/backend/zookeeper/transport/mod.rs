//! The connection to one of the servers: opens it, writes requests, reads answers,
//! connects again.

mod connect;
mod link;
mod logins;
mod wire;

pub(crate) use connect::{Dialer, Opened};
pub(crate) use link::{Link, LinkEvent};

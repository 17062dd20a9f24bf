//! The protocol, as values: statements, calls and their arguments, answers, notifications.

pub(crate) mod answer;
pub(crate) mod arg;
pub(crate) mod call;
pub(crate) mod channel;
pub(crate) mod error;
pub(crate) mod mark;
pub(crate) mod notification;
pub(crate) mod schema;
pub(crate) mod statement;
mod values;

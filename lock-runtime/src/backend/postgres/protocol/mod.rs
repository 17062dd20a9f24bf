//! The protocol, as values: statements, calls and their arguments, answers, notifications.

pub(crate) mod answer;
pub(crate) mod arg;
pub(crate) mod call;
pub(crate) mod error;
pub(crate) mod mark;
pub(crate) mod notification;
pub(crate) mod row;
pub(crate) mod schema;
pub(crate) mod session;
pub(crate) mod statement;

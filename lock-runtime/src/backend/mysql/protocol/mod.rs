//! The protocol, as values: packets, the login, calls and their arguments, answers.

pub(crate) mod answer;
pub(crate) mod arg;
pub(crate) mod bytes;
pub(crate) mod call;
pub(crate) mod error;
pub(crate) mod greeting;
pub(crate) mod packet;
pub(crate) mod proof;
